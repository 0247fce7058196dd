"""One small template a feature: (template, context)."""

M = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]

CASES = [(t, c[0] if c else {}) for t, *c in [
    # white space
    ("a\n  {% if true %}\n  b\n  {% endif %}\nc\n",), ("a\n  {%+ if true %}\n  b\n  {%+ endif +%}\nc\n\n",),
    ("a  {%- if true -%}  b  {%- endif -%}  c",), ("  {# note #}\n x {#- cut -#}  y\n",), ("x\n\n  {{ 1 }}\n  {{- 2 -}}  \n z",),
    ("{% raw %}{{ x }} {% if %}{% endraw %}\nafter",), ("  {% raw -%}\n  a\n  {%- endraw %}  b",), ("a\r\nb\rc{{ 'x\r\ny' }}",),
    ("\n",), ("\n\n",), ("{{ 'a' }}\n",), ("{% set x = 1 %}\n\n{{ x }}",), ("\u00a0{%- if true %}x{% endif -%}\u2003y",),
    # literals and escapes
    ("{{ 1_000 + 0x1F + 0b11 + 0o17 }} {{ 1.5e3 }} {{ 1e20 }} {{ 1e16 }} {{ 123456789012345680.0 }} {{ 0.0001 }} {{ 0.00001 }}",),
    ("{{ 'a\\n\\t\\\\\\'\\\"\\x41\\u00e9\\U0001F600\\101\\q' }}",), ("{{ 'a' 'b' \"c\" }}",), ("{{ '\\é \\日 \\😀' }}",), ("{{ [1, 'a', none, true, 1.0, (1,), {}, {'k': [2]}] }}",),
    ("{{ ['it\\'s', 'say \"x\"', 'both \\' and \"', '\\n\\t\\x00\\x7f', 'é\u200b'] }}",), ("{{ () }}{{ (1,) }}{{ (1, 2) }}",),
    ("{{ 1, 2 }}",), ("{{ {'a': 1, 'a': 2, 1: 'x', true: 'y', none: 0} }}",),
    # operators
    ("{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}",),
    ("{{ 1 ~ 'a' ~ none ~ true ~ 1.0 ~ missing }}",), ("{{ 'ab' * 3 }}{{ [1] * 2 + [3] }}{{ (1,) + (2,) }}",), ("{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 == true }}",),
    ("{{ 'a' in 'abc' }} {{ 1 not in [2] }} {{ 'k' in {'k': 1} }} {{ 'x' in missing }}",), ("{{ none == false }} {{ missing == missing2 }} {{ missing is none }}",),
    ("{{ 0 or 'x' }} {{ '' and 'y' }} {{ not [] }} {{ not not 'a' }} {{ 1 and 2 or 3 }}",), ("{{ 'a' if x else 'b' }}{{ 'c' if not x }}{{ 'd' if x }}|",),
    ("{{ '%s-%d-%5.1f|%-4s|%04d' % ('a', 3, 2.25, 'b', 7) }} {{ '%s' % 'x' }} {{ '100%%' % () }} {{ '%(k)s' % {'k': 1} }}",),
    ("{{ [1, 2] < [1, 3] }} {{ 'a' < 'b' }} {{ (1, 'a') <= (1, 'a') }}",), ("{{ true + true }} {{ -true }} {{ +3 }} {{ 5 - -3 }}",),
    # attributes and items
    ("{{ d.a }} {{ d['a'] }} {{ d.missing }}|{{ d['items'] }}|{{ d.items() | list }}|{{ d.get('z') }} {{ d.get('z', 1) }}", {"d": {"a": 1, "items": "I"}}),
    ("{{ l[0] }}{{ l[-1] }}{{ l[5] }}{{ l.0 }}{{ l[1:] }}{{ l[::-1] }}{{ l[:-1] }}{{ l[::2] }}{{ l[10:] }}{{ l[-100:2] }}", {"l": [1, "b", None, 4]}),
    ("{{ s[0] }}{{ s[-1] }}{{ s[1:3] }}{{ s[::-1] }}{{ s[99] }}", {"s": "aé日😀z"}), ("{{ m[-1]['content'] }}{{ m[0].role }}{{ m[1:] | length }}", {"m": M}),
    ("{{ d.pop }}{{ d.pop is defined }}", {"d": {}}), ("{{ d.pop('a') }}", {"d": {"a": 1}}), ("{{ l.append(1) }}", {"l": []}), ("{{ ''.__class__ }}",), ("{{ ''.__class__.__mro__ }}",),
    # statements
    ("{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c + d }}",), ("{% set x %}  block {{ 1 }}  {% endset %}[{{ x }}]{% set y | trim | upper %} z {% endset %}[{{ y }}]",),
    ("{% set ns = namespace(n=0, l=[]) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.n }}{{ ns.l }}{{ ns.zz }}",),
    ("{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",), ("{% if true %}{% set y = 5 %}{% endif %}{{ y }}",),
    ("{% for k, v in d.items() %}{{ k }}={{ v }}{% if not loop.last %},{% endif %}{% endfor %}", {"d": {"b": 1, "a": [2]}}),
    ("{% for x in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",),
    ("{% for x in [] %}x{% else %}none{% endfor %}{% for x in missing %}x{% else %}none{% endfor %}",), ("{% for x in [1, 2, 3, 4] if x % 2 == 0 %}{{ loop.index }}{{ x }} {% endfor %}",),
    ("{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}",),
    ("{% for x in [1, 2] %}{% break %}{% else %}none{% endfor %}{% for x in [1, 2] %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% else %}none{% endfor %}",),
    ("{% for a in [1, 2] %}{% for b in 'xy' %}{{ loop.index }}{{ a }}{{ b }}{% endfor %}{{ loop.index }};{% endfor %}",), ("{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{% endfor %}",),
    ("{% macro f(a, b='B', c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(c=3, a=1) }}{{ f() }}",), ("{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, k=4) }}",),
    ("{% macro f() %}{{ caller('x') }}!{% endmacro %}{% call(y) f() %}<{{ y }}>{% endcall %}",), ("{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",),
    ("{% macro f() %}{{ y }}{% endmacro %}{% set y = 1 %}{{ f() }}{% set y = 2 %}{{ f() }}",), ("{% filter upper | replace('A', 'x') %}abc{% endfilter %}",), ("{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",),
    ("{% macro f() %}{% macro g() %}{{ caller() if caller is defined }}{% endmacro %}{{ g() }}{% endmacro %}{% call f() %}x{% endcall %}",),
    ("{{ 0.0 // -4 }}{{ 0 * -1.5 }}{{ -1.5 // -4 }}{{ 7.5 // -2 }}{{ x is callable }}{{ 'a'.upper is callable }}{{ 1 is callable }}",),
    ("{% generation %} g {% endgeneration %}|",), ("{% set f = 'x'.upper %}{{ f() }}",), ("{{ f(*[1, 2], **{'c': 3}) }}{% macro f(a, b, c) %}{% endmacro %}",), ("{% macro f(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1, 2], **{'c': 3}) }}",),
    ("{% if a %}{% elif b %}B{% else %}E{% endif %}", {"b": 1}), ("{% print 1 %}",), ("{% macro f(x) %}{% set x = x ~ '!' %}{{ x }}{% endmacro %}{{ f('a') }}{{ x }}",),
    # filters
    ("{{ ' a ' | trim }}|{{ 'xxaxx' | trim('x') }}|{{ 'hello world-foo (bar)' | title }}|{{ 'hELLO' | capitalize }}",), ("{{ 'aaa' | replace('a', 'b', 2) }}{{ 'abc' | replace('', '-') }}{{ 5 | replace(5, 6) }}",),
    ("{{ [1, [2], 'x'] | join('-') }}{{ m | join(',', attribute='role') }}{{ 'abc' | join('.') }}{{ d | join }}", {"m": M, "d": {"a": 1, "b": 2}}),
    ("{{ m | map(attribute='role') | list }}{{ m | map('length') | join }}{{ ['a'] | map('upper') | first }}{{ m | map(attribute='zz', default='D') | list }}", {"m": M}),
    ("{{ m | selectattr('role', 'equalto', 'user') | map(attribute='content') | join }}{{ m | rejectattr('role', 'in', ['user']) | list | length }}", {"m": M}), ("{{ [0, 1, '', none, 'a'] | select | list }}{{ [1, 2, 3] | reject('odd') | list }}{{ [1, 'a'] | select('string') | list }}",),
    ("{{ x | default('D') }}{{ '' | default('E', true) }}{{ none | default('F') }}{{ false | d('G', boolean=true) }}",), ("{{ [3, 1, 2] | sort }}{{ ['b', 'A', 'a'] | sort }}{{ ['b', 'A', 'a'] | sort(case_sensitive=true, reverse=true) }}{{ m | sort(attribute='role') | map(attribute='role') | list }}", {"m": M}),
    ("{{ {'b': 1, 'A': 2} | dictsort }}{{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) }}{{ {'b': 1} | items | list }}",), ("{{ [1, 2, 1] | unique | list }}{{ ['a', 'A'] | unique | list }}{{ [3, 1] | min }}{{ ['a', 'B'] | max }}{{ [] | max }}{{ [1, 2.5] | sum }}{{ m | sum(attribute='n') }}", {"m": [{"n": 1}, {"n": 2}]}),
    ("{{ '3' | int + 1 }}{{ 'x' | int }}{{ 'x' | int(9) }}{{ '3.9' | int }}{{ 3.9 | int }}{{ 'ff' | int(0, 16) }}{{ '1.5' | float }}{{ 'x' | float }}{{ ' 12 ' | int }}{{ true | int }}",), ("{{ 2.5 | round }}{{ 3.5 | round }}{{ 2.675 | round(2) }}{{ 42.55 | round(1, 'floor') }}{{ 2 | round }}{{ -3 | abs }}{{ 1.1 | round(0, 'ceil') }}",),
    ("{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(1, blank=true) }}|{{ 'a\nb' | indent('> ') }}|{{ '' | indent }}",), ("{{ 'hello world foo' | truncate(11) }}|{{ 'hello world foo' | truncate(8, true, '..', 0) }}",), ("{{ '%s=%d' | format('a', 1) }}{{ '%(a)s' | format(a=2) }}",),
    ("{{ '<&>\"\\'' | escape }}{{ '<' | e | e }}{{ '<' | safe }}{{ ('<' | safe) + '>' }}{{ '<b>' + ('x' | safe) }}{{ '<' ~ ('>' | safe) }}",), ("{{ [1, 2] | first }}{{ [1, 2] | last }}{{ 'abc' | last }}{{ [] | first }}{{ 'abc' | reverse }}{{ [1, 2] | reverse | list }}{{ 'ab' | list }}{{ {'a': 1} | list }}",),
    ("{{ 1.0 | string }}{{ none | string | length }}{{ 'é日' | length }}{{ {'a': 1} | count }}",), ("{% set x = [1, 2] | select %}{{ x | list }}{{ x | list }}",), ("{% set x = [1, 2] | map('string') %}{{ x | first }}{{ x | list }}",),
    # tojson
    ("{{ {'b': [1, 2.0, 'é\\n\"\\\\</script>', none, true], 'a': {}, 'c': []} | tojson }}",), ("{{ {'b': [1, {'x': []}], 'a': {}} | tojson(indent=2) }}",), ("{{ {'b': [1]} | tojson(indent='\\t') }}{{ [1, 2] | tojson(indent=0) }}",), ("{{ {'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':'), sort_keys=true) }}",),
    ("{{ 'é日😀\\x7f\\x1f\u2028' | tojson(ensure_ascii=true) }}{{ 'é日😀\\x7f\\x1f\u2028' | tojson }}",), ("{{ [1e100, 1e-7, 0.1, 1e16, 123456789.123, -0.0] | tojson }}",), ("{{ {1: 'a', true: 'b', none: 'c', 1.5: 'd'} | tojson }}",), ("{{ x | tojson }}",), ("{{ (1, 2) | tojson }}{{ range(2) | list | tojson }}",),
    # methods
    ("{{ ' a b '.strip() }}|{{ 'xay'.strip('xy') }}|{{ '\\n\\na\\n'.lstrip('\\n') }}|{{ 'a b  c'.split() }}{{ 'a,b,c'.split(',', 1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a  b c '.split(none, 1) }}",), ("{{ 'a</think>b</think>c'.split('</think>')[-1] }}{{ 'abc'.split('</think>')[0] }}",),
    ("{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abc'.find('c') }}{{ 'abc'.find('z') }}{{ 'aXbX'.rfind('X') }}{{ 'aaa'.count('a') }}{{ 'aé'.index('é') }}",), ("{{ 'they\\'re bill\\'s'.title() }}{{ 'ßa'.upper() }}{{ 'ÀÉ'.lower() }}{{ 'hELLO wORLD'.capitalize() }}",),
    ("{{ 'a-b'.partition('-') }}{{ 'a-b-c'.rpartition('-') }}{{ 'abc'.partition('x') }}{{ 'prefix'.removeprefix('pre') }}{{ '7'.zfill(3) }}{{ '-7'.zfill(4) }}{{ ','.join(['a', 'b']) }}",), ("{{ '{} {1} {name} {{}}'.format(1, name=2) }}",), ("{{ '{} {} {name!r} {{}}'.format(1, 'b', name='c') }}",), ("{{ 'a\\nb\\r\\nc'.splitlines() }}{{ 'a\\nb'.splitlines(true) }}",),
    ("{{ '12'.isdigit() }}{{ 'aé'.isalpha() }}{{ ' '.isspace() }}{{ 'A1'.isupper() }}{{ ''.isdigit() }}{{ 'a1'.isalnum() }}",), ("{{ d.keys() | list }}{{ d.values() | list }}{{ d.items() | length }}", {"d": {"x": 1, "y": 2}}), ("{{ [1, 2, 1].count(1) }}{{ [1, 2].index(2) }}{{ 'abc'.replace('b', 'X') }}{{ 'aaa'.replace('a', 'b', 1) }}",),
    # tests
    ("{{ x is defined }}{{ x is undefined }}{{ none is none }}{{ 1 is number }}{{ true is number }}{{ true is integer }}{{ 1.0 is float }}{{ 'a' is string }}{{ {} is mapping }}{{ [] is sequence }}{{ 'a' is iterable }}{{ 1 is iterable }}{{ {} is sequence }}{{ x is sequence }}{{ x is iterable }}",),
    ("{{ 3 is odd }}{{ 4 is even }}{{ 9 is divisibleby 3 }}{{ 1 is in [1] }}{{ 1 is not in [1] }}{{ 'a' is eq 'a' }}{{ 2 is gt 1 }}{{ 'ab' is lower }}{{ 'AB' is upper }}{{ none is sameas none }}{{ true is true }}{{ 1 is true }}{{ false is false }}{{ 0 is boolean }}{{ 'upper' is filter }}{{ 'odd' is test }}",),
    # functions
    ("{{ range(3) | list }}{{ range(1, 4) | list }}{{ range(5, 0, -2) | list }}{{ dict(a=1, b=2) }}{{ dict({'x': 1}, y=2) }}",), ("{{ strftime_now('%d %b %Y %H:%M:%S %A') }}{{ strftime_now is defined }}",), ("{{ range(1000000) }}",), ("{{ namespace(_x=1) }}",),
    # errors
    ("a\n{{ raise_exception('No ' ~ 'way') }}",), ("{{ x.y }}",), ("{{ x.y.z }}", {"x": {}}), ("{{ 1 + 'a' }}",), ("{{ 'a' + none }}",), ("{{ x + 'a' }}",), ("{{ 1 / 0 }}",), ("{{ none[0] }}",), ("{{ none[0].x }}",), ("{{ [] | tojson(bad=1) }}",), ("{{ 'a' < 1 }}",), ("{{ 1 in 2 }}",),
    ("{{ 1 in 'a' }}",), ("{% for a, b in [1] %}{% endfor %}",), ("{% for a, b in [[1, 2, 3]] %}{% endfor %}",), ("{{ f() }}",), ("{{ 1() }}",), ("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}",), ("{% macro f(a) %}{% endmacro %}{{ f(b=2) }}",), ("{% set x.y = 1 %}",), ("{% set x = {} %}{% set x.y = 1 %}",), ("{{ {}[[]] }}",), ("{{ {[]: 1} }}",), ("{{ 'a' | unknown_filter }}",), ("{{ 'a' is unknown_test }}",), ("{% if false %}{{ 'a' | unknown_filter }}{% endif %}ok",), ("{% unknown_tag %}",), ("{% if %}",), ("{{ }}",), ("{{ 1",), ("{% if 1 %}",), ("{% endif %}",), ("{{ 'a }}",), ("{# open",), ("{{ (1 }}",), ("{{ 1) }}",), ("{{ a b }}",), ("{% for x in %}{% endfor %}",), ("{% break %}",), ("{{ $ }}",), ("{% set none = 1 %}",), ("{% set 1 = 1 %}",), ("{{ f(a=1, 2) }}",), ("{% macro f(a=1, b) %}{% endmacro %}",), ("{{ 'x'.nope() }}",), ("{{ 5 | items }}",), ("{{ [1] | map('nope') | list }}",), ("{{ 'abc'.index('z') }}",), ("{{ [] | join(attribute='a') }}{{ [1] | first.x }}",), ("{{ 'a'.split('') }}",), ("{{ -'a' }}",), ("{% raw %}x",), ("{{ {'a' 1} }}",), ("{{ 'a' is is }}",), ("{{ x[1, 2 }}",), ("{{ loop.index }}",), ("{% for x in 5 %}{% endfor %}",), ("{{ '%d' % 'a' }}",), ("{{ '%s %s' % 'a' }}",), ("{{ 2 ** 0.5 }}",), ("{{ x() if false else 'fine' }}",),
]]

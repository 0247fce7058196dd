"""Random small templates of the subset that runtime/text/jinja supports, and contexts for them."""
import random

TEXTS = ["", "a", "abc", "Hello World", "x,y,,z", "  pad \t", "line one\nline two\n", "ünïcödé ß", "日本語",
         "a<b>&'\"", "\u2028sep", "😀 smile", "</think>done", "<think>\nwhy\n</think>\n\nsaid", "ABC def", "12", "-3.5",
         "don't", 'say "hi"', "tab\there", "back\\slash", "\x1f\x7f\x85", "%s and %d", "{} {name}"]
NUMBERS = [0, 1, 2, -1, 3, 7, 10, 255, -17, 1.5, 0.0, -0.25, 1e16, 1e-7, 123456.789]
NAMES = ["s", "t", "n", "m", "items", "words", "d", "nested", "flag", "nothing", "missing", "messages", "x"]
WHITE = ["", "", "", " ", "\n", "\n  ", "  \n", "\n\n", "\t"]


def context(r):
    def text():
        return r.choice(TEXTS)

    return {
        "s": text(), "t": text(), "n": r.choice(NUMBERS), "m": r.choice([1, 2, 3, 5, -2]),
        "items": [r.choice([r.choice(NUMBERS), text(), None, True]) for _ in range(r.randrange(5))],
        "words": [text() for _ in range(r.randrange(4))],
        "d": {k: r.choice([text(), r.choice(NUMBERS), None, [1, 2], {"z": text()}])
              for k in r.sample(["a", "b", "key", "role", "content", "items"], r.randrange(5))},
        "nested": {"list": [[1, "two"], {"three": 3.0}], "text": text(), "none": None},
        "flag": r.choice([True, False]), "nothing": None,
        "messages": [{"role": r.choice(["user", "assistant", "system"]), "content": text(),
                      **({"tool_calls": [{"name": text(), "args": {"q": text()}}]} if r.random() < 0.3 else {})}
                     for _ in range(r.randrange(4))],
    }


class Generator:
    def __init__(self, r):
        self.r = r
        self.depth = 0
        self.loops = 0
        self.names = list(NAMES)
        self.tame = r.choice([0.5, 0.97, 1.0])  # how often an expression is of kinds that go together

    def deeper(self, make, otherwise):
        """make(), or the literal if that would be too deep."""
        self.depth += 1
        try:
            return make() if self.depth <= 5 else otherwise
        finally:
            self.depth -= 1

    def a_text(self):
        return self.deeper(lambda: self.pick(
            lambda: self.pick("s", "t", "nested.text", "(d.key | string)"), self.string, lambda: f"({self.a_text()} ~ {self.expr()})",
            lambda: f"({self.a_text()} + {self.a_text()})", lambda: f"({self.a_text()} if {self.a_truth()} else {self.a_text()})",
            lambda: self.a_text() + "." + self.pick(
                "strip()", "lstrip('\\n')", f"strip({self.string()})", "upper()", "lower()", "title()", "capitalize()", "replace('a', 'Q')",
                "replace('', '-')", "split('</think>')[-1]", "split(',')[0]", "partition(',')[2]", "removeprefix('a')", "zfill(4)"),
            lambda: f"({self.a_text()} | " + self.pick(
                "trim", "upper", "lower", "capitalize", "title", "replace('a', 'b')", "indent", "indent(2, true)", "reverse", "truncate(6)",
                "default('d', true)", "string", "length | string") + ")",
            lambda: f"({self.a_list()} | join({self.string()}))", lambda: f"({self.expr()} | string)",
            lambda: f"({self.expr()} | tojson{self.pick('', '(indent=2)', '(ensure_ascii=true)')})", lambda: f"({self.a_text()}[{self.pick('1:', ':2', '::-1', '-2:', '0:3', '::2')}])",
            lambda: f"'%s|%s' % ({self.expr()}, {self.expr()})", lambda: f"'{{}} {{}}'.format({self.expr()}, {self.a_text()})")(), "'deep'")

    def a_list(self):
        return self.deeper(lambda: self.pick(
            lambda: self.pick("items", "words", "messages", "nested.list", "(d.items() | list)", "(range(4) | list)", "(d | list)"),
            lambda: f"[{self.expr()}, {self.expr()}]", lambda: f"{self.a_text()}.split({self.pick('', chr(39) + ',' + chr(39))})",
            lambda: f"{self.a_list()}[{self.pick('1:', ':2', '::-1', '-2:', '::2')}]", lambda: f"({self.a_list()} + {self.a_list()})",
            lambda: f"({self.a_list()} | " + self.pick(
                "map('string')", "select", "reject('none')", "select('string')", "reverse", "map('string') | sort", "map('tojson') | unique",
                "reject('number')", "map('default', 'x', true)") + " | list)",
            lambda: "(messages | " + self.pick(
                "map(attribute='role')", "selectattr('role', 'equalto', 'user')", "rejectattr('tool_calls', 'defined')",
                "selectattr('content')", "map(attribute='tool_calls', default=[])", "sort(attribute='role')") + " | list)",
            lambda: f"{self.a_text()}.splitlines()", lambda: "(d | dictsort)" )(), "[1, 'deep']")

    def a_number(self):
        return self.deeper(lambda: self.pick(
            lambda: self.pick("m", "n", "1", "2", "10", "2.5", "-3"), lambda: f"({self.a_number()} {self.pick('+', '-', '*')} {self.a_number()})",
            lambda: f"({self.a_number()} {self.pick('//', '%', '/')} {self.pick('2', '3', '-4', '1.5')})", lambda: f"({self.a_list()} | length)",
            lambda: f"({self.a_text()} | length)", lambda: f"{self.a_text()}.count('a')", lambda: f"({self.a_text()} | int)", lambda: f"({self.a_number()} | abs)",
            lambda: f"({self.a_number()} | round(1))", lambda: f"({self.expr()} | string | length)",
            lambda: "loop." + self.pick("index", "index0", "length", "revindex") if self.loops else "3")(), "4")

    def a_truth(self):
        return self.deeper(lambda: self.pick(
            lambda: self.pick("flag", "true", "not flag", "missing", "nothing is none"), lambda: f"({self.a_number()} {self.pick('<', '>', '==', '<=', '!=')} {self.a_number()})",
            lambda: f"({self.a_text()} {self.pick('==', '<', 'in', 'not in')} {self.a_text()})", lambda: f"({self.expr()} in {self.a_list()})",
            lambda: f"({self.expr()} is {self.pick('', 'not ')}{self.pick('string', 'none', 'defined', 'mapping', 'sequence', 'number', 'iterable', 'boolean')})",
            lambda: f"{self.a_text()}.{self.pick('startswith', 'endswith')}({self.string()})", lambda: f"({self.a_truth()} {self.pick('and', 'or')} {self.a_truth()})",
            lambda: f"(not {self.a_truth()})", lambda: "loop." + self.pick("first", "last") if self.loops else "flag", lambda: f"({self.expr()} == {self.expr()})")(), "false")

    def pick(self, *options):
        return self.r.choice(options)

    def literal(self):
        r = self.r
        kind = r.randrange(6)
        if kind == 0:
            return str(r.choice([0, 1, 2, 3, 10, 1.5, "1e3", "0x1F", "1_000"]))
        if kind == 1:
            return self.pick("true", "false", "none", "True", "None")
        if kind == 2:
            return self.string()
        if kind == 3:
            return "[" + ", ".join(self.expr() for _ in range(r.randrange(3))) + "]"
        if kind == 4:
            return "{" + ", ".join(f"{self.string()}: {self.expr()}" for _ in range(r.randrange(3))) + "}"
        return "(" + ", ".join([self.expr(), self.expr()]) + ")"

    def string(self):
        body = self.r.choice(["a", "b", ",", "\\n", "x y", "", "</think>", "\\u00e9", "\\x41", "ü", "key", "role", "<", "\\\\",
                              "\\'", "content", "%s|%5.2f", "{}-{}"])
        return f"'{body}'" if self.r.random() < 0.7 else f'"{body}"'

    def name(self):
        if self.loops and self.r.random() < 0.25:
            return "loop." + self.pick("index", "index0", "first", "last", "length", "revindex", "revindex0",
                                       "previtem", "nextitem")
        return self.r.choice(self.names)

    def expr(self):
        self.depth += 1
        try:
            if self.depth > 4:
                return self.pick(self.name(), self.string(), "1", "2")
            if self.r.random() < self.tame:
                return self.pick(self.a_text, self.a_text, self.a_list, self.a_number, self.a_truth)()
            return self.pick(self.name, self.name, self.literal, self.binary, self.compare, self.logic, self.filter,
                             self.filter, self.test, self.method, self.subscript, self.subscript, self.slice,
                             self.ternary, self.unary)()
        finally:
            self.depth -= 1

    def binary(self):
        return f"{self.group()} {self.pick('+', '-', '*', '/', '//', '%', '~', '~', '+', '**')} {self.group()}"

    def group(self):
        e = self.expr()
        return e if self.r.random() < 0.5 else f"({e})"

    def compare(self):
        op = self.pick("==", "!=", "<", "<=", ">", ">=", "in", "not in")
        tail = f" {self.pick('<', '==', '!=')} {self.group()}" if self.r.random() < 0.15 else ""
        return f"{self.group()} {op} {self.group()}{tail}"

    def logic(self):
        return f"{self.group()} {self.pick('and', 'or')} {self.group()}"

    def unary(self):
        return f"{self.pick('not ', '-', '+')}{self.group()}"

    def ternary(self):
        tail = f" else {self.expr()}" if self.r.random() < 0.8 else ""
        return f"({self.expr()} if {self.expr()}{tail})"

    def small(self):
        return str(self.r.choice([0, 1, 2, 3, -1, 5]))

    def filter(self):
        one = self.pick(
            "trim", "upper", "lower", "capitalize", "title", "length", "count", "string", "list", "first", "last", "reverse",
            "join", "join(', ')", f"join({self.string()})", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=True)",
            "tojson(separators=(',', ':'))", "tojson(sort_keys=True)", "tojson(indent=4)", "default('d')", "default('d', true)",
            "d(1)", f"replace({self.string()}, {self.string()})", f"replace('a', 'b', {self.small()})", "int", "float", "int(7)",
            "abs", "round", "round(1)", f"round({self.small()}, 'floor')", "round(2, 'ceil')", "items|list", "sort",
            "sort(reverse=true)", "unique|list", "map('upper')|list", "map(attribute='role')|list",
            "map(attribute='role', default='none')|join('|')", "map('string')|join", "select|list", "reject('none')|list",
            "select('string')|list", "selectattr('role', 'equalto', 'user')|list|length",
            "rejectattr('role', 'eq', 'user')|map(attribute='content')|list", "selectattr('tool_calls', 'defined')|list|length",
            "selectattr('content')|list|length", "indent", "indent(2, true)", "indent(width=3, blank=true)", "indent('> ')", "min", "max",
            "sum", "dictsort", "dictsort(by='value')", f"format({self.expr()})", "truncate(5)", "truncate(7, true, '!')",
            f"trim({self.string()})", "escape", "safe", "list|first", "list|last", "sort|join(' ')", "reverse|list")
        return f"{self.group()} | {one}"

    def test(self):
        one = self.pick("defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "number", "integer", "float",
                        "boolean", "true", "false", "odd", "even", "divisibleby 2", "divisibleby(3)", "in [1, 2, 'a']", "eq 1",
                        "equalto('a')", "lower", "upper", "gt 1", "lt(2)", "sameas none", "ne 2", "callable", "in s")
        return f"{self.group()} is {self.pick('', 'not ')}{one}"

    def method(self):
        one = self.pick(
            "strip()", "lstrip()", "rstrip()", f"strip({self.string()})", "lstrip('\\n')", "rstrip('\\n')", "split()",
            f"split({self.string()})", f"split(',', {self.small()})", f"split(none, {self.small()})", f"rsplit(' ', {self.small()})",
            "splitlines()", "splitlines(true)", f"split({self.string()})[-1]", f"split({self.string()})[0]",
            f"startswith({self.string()})", f"endswith({self.string()})", "startswith(('a', 'H'))", f"replace({self.string()}, 'Q')",
            "replace('', '-')", "upper()", "lower()", "title()", "capitalize()", "items()", "items()|list", "keys()|list",
            "values()|list", f"get({self.string()})", f"get({self.string()}, 'dflt')", f"find({self.string()})", "rfind('a')",
            "count('a')", f"count({self.string()})", "join(words)", "format(1, 'two')", "isdigit()", "isalpha()", "isupper()",
            "isspace()", f"index({self.string()})", "partition(',')", "rpartition(' ')", "removeprefix('a')", "removesuffix('c')", "zfill(5)",
            "find('a', 1)", "isalnum()", "copy()", "append(1)", "pop", "rsplit(none, 1)", "islower()")
        return f"{self.postfix_base()}.{one}"

    def postfix_base(self):
        return self.pick(self.name(), self.name(), f"({self.expr()})", self.string())

    def subscript(self):
        tail = self.pick(".a", ".role", ".content", "['key']", "['role']", "[0]", "[-1]", "[1]", "['items']", ".items", ".list[0][1]",
                         ".text", f"[{self.expr()}]", ".z", "[m]", ".0")
        return self.postfix_base() + tail

    def slice(self):
        tail = self.pick("[1:]", "[:2]", "[::-1]", "[-2:]", "[:-1]", "[1:3]", "[::2]", "[5:1:-2]", f"[{self.small()}:{self.small()}]", "[:]",
                         "[-1:0:-1]")
        return self.pick(self.name(), self.name(), self.string()) + tail

    # statements

    def tag(self, inside):
        return "{%" + self.pick("", "", "-", "+") + " " + inside + " " + self.pick("", "", "-", "+") + "%}"

    def text(self):
        return self.r.choice(WHITE) + self.r.choice(["", "", "T", "text", "<|im_start|>", "é", "{ }", "a b"]) + self.r.choice(WHITE)

    def output(self):
        return "{{" + self.pick("", "", "-", "+") + " " + self.expr() + " " + self.pick("", "", "-") + "}}"

    def block(self, level):
        return self.text() + "".join(self.statement(level) + self.text() for _ in range(self.r.randrange(1, 3)))

    def statement(self, level):
        if level > 2:
            return self.output()
        return self.pick(self.output, self.output, self.output, lambda: self.set(level), lambda: self.set(level), lambda: self.branch(level),
                         lambda: self.branch(level), lambda: self.loop(level), lambda: self.loop(level), lambda: self.macro(level),
                         lambda: self.other(level))()

    def set(self, level):
        name = self.pick("x", "y")
        kind = self.r.randrange(5)
        block_name = self.pick("x", "y")  # Jinja hides a context's name from the block that sets it
        if kind == 0:
            return self.tag(f"set {block_name}") + self.block(level + 1) + self.tag("endset")
        if kind == 1:
            return self.tag(f"set {name}, z = {self.expr()}, {self.expr()}")
        if kind == 2:
            ns = self.tag(f"set ns = namespace(v={self.expr()}, w=0)")
            loop = self.tag("for i in range(3)") + self.tag("set ns.w = ns.w + i") + self.tag("endfor")
            return ns + loop + "{{ ns.v }}{{ ns.w }}"
        if kind == 3:
            return self.tag(f"set {block_name} | trim | upper") + self.text() + self.output() + self.tag("endset") + "{{ " + block_name + " }}"
        if self.r.random() < 0.3:  # named before it is set: Jinja hides what it finds set only later on
            name = self.pick("s", "n", "messages", "items")
            return "{{ " + name + " is defined }}" + self.tag(f"set {name} = {self.expr()}")
        return self.tag(f"set {name} = {self.expr()}")

    def branch(self, level):
        out = self.tag(f"if {self.expr()}") + self.block(level + 1)
        if self.r.random() < 0.4:
            out += self.tag(f"elif {self.expr()}") + self.block(level + 1)
        if self.r.random() < 0.5:
            out += self.tag("else") + self.block(level + 1)
        return out + self.tag("endif")

    def loop(self, level):
        if self.r.random() < 0.25:
            head = self.pick("for k, v in d.items()", "for k, v in d|items", "for k, v in nested | dictsort", "for k, v in d | dictsort")
            added = ["k", "v"]
        else:
            head = "for i in " + self.pick("items", "words", "messages", "range(3)", "[1, 2, 3]", "messages[::-1]", "s", "d", "range(4, 0, -2)",
                                           self.expr())
            added = ["i", "i"]
            if self.r.random() < 0.2:
                head += " if " + self.pick("i", "i is string", "i != 2", "loop is defined or i", self.pick("i.role == 'user'", "i in items"))
        before = list(self.names)
        self.names += added * 3
        self.loops += 1
        body = self.block(level + 1)
        if self.r.random() < 0.2:
            body += self.tag(f"if {self.expr()}") + self.tag(self.pick("break", "continue")) + self.tag("endif") + self.text()
        self.loops -= 1
        self.names = before
        if self.r.random() < 0.2:
            body += self.tag("else") + self.block(level + 1)
        return self.tag(head) + body + self.tag("endfor")

    def macro(self, level):
        name = self.pick("f", "g")
        before, loops = list(self.names), self.loops
        self.names += ["p", "q"] * 2
        self.loops = 0
        body = self.block(level + 1)
        if self.r.random() < 0.3:
            body += self.pick("{{ caller() if caller is defined }}", "{{ varargs }}", "{{ kwargs }}")
        self.names, self.loops = before, loops
        define = self.tag(f"macro {name}(p, q={self.literal()})") + body + self.tag("endmacro")
        call = self.pick(f"{name}({self.expr()})", f"{name}({self.expr()}, q={self.expr()})", f"{name}()", f"{name}(1, 2)",
                         f"{name}(q={self.expr()}, p=1)", f"{name}(1, 2, 3)")
        if self.r.random() < 0.2:
            return define + self.tag(f"call {call}") + self.block(level + 1) + self.tag("endcall")
        return define + "{{ " + call + " }}"

    def other(self, level):
        return self.pick(
            lambda: self.tag(f"filter {self.pick('upper', 'trim', 'replace(1, 2)', 'indent(2)')}") + self.block(level + 1) + self.tag("endfilter"),
            lambda: self.tag(f"with y = {self.expr()}, w = 1") + "{{ y }}" + self.block(level + 1) + self.tag("endwith"),
            lambda: "{#" + self.pick("", "-") + " note " + self.pick("", "-") + "#}",
            lambda: "{%" + self.pick("", "-") + " raw " + self.pick("", "-") + "%}{{ x }} {% if %}" + self.text() + "{% endraw " +
            self.pick("", "-") + "%}",
            lambda: self.tag("generation") + self.block(level + 1) + self.tag("endgeneration"),
            lambda: "{{ raise_exception(" + self.expr() + ") }}" if self.r.random() < 0.2 else "{{ strftime_now('%d %b %Y') }}",
            lambda: "{% set u = undefined_name %}{{ u.attribute }}" if self.r.random() < 0.2 else "{{ undefined_name }}")()

    def template(self):
        return self.block(0) + "".join(self.block(0) for _ in range(self.r.randrange(2)))


def case(seed):
    r = random.Random(seed)
    return {"template": Generator(r).template(), "context": context(r)}

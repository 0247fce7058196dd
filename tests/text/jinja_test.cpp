#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/text/jinja/program.hpp"

using namespace tokenrouter;
using json = nlohmann::ordered_json;

namespace {

result<std::string> rendered(const std::string& source, const json& given = json::object()) {
  const auto parsed = jinja::program::parse(source, "T");
  if (!parsed)
    return tl::unexpected(parsed.error());
  return parsed->render(given, std::tm{});
}

std::string message_of(const std::string& source, const json& given = json::object()) {
  const auto got = rendered(source, given);
  return got ? "rendered: " + *got : got.error().message;
}

std::string repeated(const std::string& s, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += s;
  return out;
}

std::vector<std::string> known_templates() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/jinja/templates")) {
    std::ifstream stream(entry.path(), std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  std::ifstream features("tests/data/jinja/features.json");
  for (const auto& one : json::parse(features))
    out.push_back(one["template"]);
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(errors_name_the_line_and_what_is_unknown) {
  const std::pair<const char*, const char*> rows[] = {
      {"a\nb\n{% include 'x' %}", "T:3: the tag 'include' is not known or not supported"},
      {"{% extends 'x' %}", "T:1: the tag 'extends' is not known or not supported"},
      {"{% for x in y recursive %}{% endfor %}", "T:1: a recursive loop is not supported"},
      {"\n{{ x | urlize }}", "T:2: the filter 'urlize' is not known or not supported"},
      {"{{ x is cheerful }}", "T:1: the test 'cheerful' is not known or not supported"},
      {"{% if true %}\n{{ x | urlize }}{% endif %}",
       "T:2: the filter 'urlize' is not known or not supported"},
      {"{{ 'x'.swapcase() }}", "T:1: 'swapcase' of a str is not supported"},
      {"{{ 'x'.nothing() }}", "T:1: 'str object' has no attribute 'nothing'"},
      {"{{ cycler(1) }}", "T:1: the function 'cycler' is not supported"},
      {"\n\n{{ nobody.name }}", "T:3: 'nobody' is undefined"},
      {"{{ {}.a.b }}", "T:1: 'dict object' has no attribute 'a'"},
      {"{% set ns = namespace() %}{{ ns.items.append(1) }}",
       "T:1: 'Namespace object' has no attribute 'items'"},
      {"{{ [].append(1) }}", "T:1: access to attribute 'append' of 'list' object is unsafe."},
      {"x\n{{ raise_exception('Roles must alternate') }}", "T:2: Roles must alternate"},
      {"{% if x %}\n{% endfor %}", "T:2: the tag 'endfor' is not known or not supported"},
      {"{{ 9223372036854775807 + 1 }}", "T:1: a whole number beyond 64 bits"},
  };
  for (const auto& [source, want] : rows)
    BOOST_TEST(message_of(source) == want);
}

BOOST_AUTO_TEST_CASE(malformed_templates_are_told_from_failing_ones) {
  BOOST_TEST((rendered("{% if").error().code == errc::malformed));
  BOOST_TEST((rendered("{{ raise_exception('x') }}").error().code == errc::invalid_argument));
  BOOST_TEST((rendered("{{ 'a' * 1000000000 }}").error().code == errc::capacity));
}

BOOST_AUTO_TEST_CASE(a_template_that_grows_without_bound_is_stopped) {
  const std::string twice = "{% set ns.s = ns.s + ns.s %}";
  const std::string list_twice = "{% set ns.s = [ns.s, ns.s] %}";
  const auto looped = [](const std::string& first, const std::string& body) {
    return "{% set ns = namespace(s=" + first + ") %}{% for i in range(100000) %}" + body +
           "{% endfor %}";
  };
  const std::string rows[] = {
      looped("'ab'", twice),
      looped("[1]", twice),
      looped("[1]", list_twice),
      looped("1", "{% set ns.s = {'k': ns.s}.get %}"),
      looped("1", "{% for x in [ns.s] %}{% set ns.s = loop %}{% endfor %}"),
      "{% set ns = namespace(s=1) %}" + repeated(list_twice, 60) + "{{ ns.s }}",
      "{% set ns = namespace(s=1) %}" + repeated(list_twice, 60) + "{{ ns.s == ns.s + [] }}",
      "{% set ns = namespace(s=1) %}" + repeated(list_twice, 60) + "{{ ns.s | tojson }}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
      "{{ 'a' * 999999999999 }}",
      "{{ ([1] * 1000000) * 1000000 }}",
      "{{ '%9999999d' % 1 }}",
      "{{ ('x' * 1000000).replace('', 'y' * 1000000) }}",
      "{{ (['x' * 1000000] * 100000) | join }}",
      "{{ ('x\n' * 1000000) | indent(10000) }}",
      "{{ range(100001) }}",
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% for a in range(100000) %}{{ range(100000) | list | sort | length }}{% endfor %}",
      "{{ " + repeated("(", 500) + "1" + repeated(")", 500) + " }}",
      "{{ " + repeated("not ", 100000) + "1 }}",
      "{{ " + repeated("-", 100000) + "1 }}",
      "{{ 1" + repeated(" + 1", 100000) + " }}",
      "{{ x" + repeated(".y", 100000) + " }}",
      "{{ x" + repeated("|e", 100000) + " }}",
      "{{ 1" + repeated(" if 1 else 1", 100000) + " }}",
      "{{ " + repeated("[", 100000) + " }}",
      repeated("{% if 1 %}", 100000) + repeated("{% endif %}", 100000),
      "{% for " + repeated("(", 100000) + "x in y %}{% endfor %}",
  };
  for (const std::string& source : rows) {
    const auto got = rendered(source);
    BOOST_TEST(!got.has_value(), source.substr(0, 100));
  }
}

BOOST_AUTO_TEST_CASE(deep_and_large_messages_are_bounded) {
  json deep = 1;
  for (int i = 0; i < 3000; ++i)
    deep = json::array({std::move(deep)});
  BOOST_TEST((rendered("{{ x }}", json{{"x", deep}}).error().code == errc::capacity));
  const json huge = json{{"x", 18446744073709551615u}};
  BOOST_TEST(message_of("{{ x }}", huge) == "T: the number 18446744073709551615 is beyond 64 bits");
  const std::string text(3'000'000, 'x');
  BOOST_TEST(rendered("{{ x.strip() }}{{ x.split('y')[-1] }}", json{{"x", text}})->size() ==
             2 * text.size());
}

BOOST_AUTO_TEST_CASE(values_that_hold_each_other_are_freed) {
  const std::string source = "{% set a = namespace() %}{% set b = namespace(o=a) %}"
                             "{% set a.o = [b, a] %}{% macro m() %}{{ a }}{% endmacro %}"
                             "{% set a.m = m %}{% for x in [1] %}{{ loop.changed(loop) }}"
                             "{% endfor %}";
  for (int i = 0; i < 3; ++i)
    BOOST_TEST(*rendered(source) == "True");
  const std::string late = "{% set ns = namespace() %}{% for x in [1] %}{% macro f() %}{{ x }}"
                           "{% endmacro %}{% set ns.f = f %}{% endfor %}{{ ns.f() }}";
  BOOST_TEST(message_of(late) ==
             "T:1: the macro 'f' is called outside of the loop or block it is defined in");
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_passes_unharmed) {
  const auto parsed =
      jinja::program::parse("{{ x }}|{{ x.strip() }}|{{ x[::-1] }}|{{ x|length }}", "T");
  const json given{{"x", " \xff\xc3(\xe6\x97 "}};
  BOOST_TEST(*parsed->render(given, std::tm{}) ==
             " \xff\xc3(\xe6\x97 |\xff\xc3(\xe6\x97| \xe6\x97(\xc3\xff |6");
}

BOOST_AUTO_TEST_CASE(damaged_templates_never_crash_or_hang) {
  std::mt19937 draw(20250726);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(draw);
  };
  const std::vector<std::string> all = known_templates();
  const std::string marks = "{%}-+'\"\\|.,:()[]#\n \xff" + std::string(1, '\0');
  const json given = {{"messages", json::array({{{"role", "user"}, {"content", "x"}}})},
                      {"x", "y"},
                      {"tools", nullptr}};
  int parsed_count = 0, rendered_count = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string source = all[below(all.size())];
    for (std::size_t change = 1 + below(3); change > 0 && !source.empty(); --change) {
      const std::size_t at = below(source.size());
      switch (below(4)) {
      case 0:
        source.resize(at);
        break;
      case 1:
        source[at] = marks[below(marks.size())];
        break;
      case 2:
        source.erase(at, 1 + below(8));
        break;
      default:
        source.insert(at, all[below(all.size())].substr(0, 1 + below(40)));
      }
    }
    const auto parsed = jinja::program::parse(source, "T");
    if (!parsed) {
      BOOST_TEST((parsed.error().code == errc::malformed), source);
      continue;
    }
    ++parsed_count;
    const auto got = parsed->render(given, std::tm{});
    rendered_count += got.has_value();
    BOOST_TEST((got || got.error().code != errc::internal), source);
  }
  BOOST_TEST(parsed_count > 500);
  BOOST_TEST(rendered_count > 100);
}

BOOST_AUTO_TEST_CASE(one_program_renders_for_several_threads) {
  const auto parsed = jinja::program::parse(
      "{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(x) }}",
      "T");
  BOOST_REQUIRE(parsed);
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (std::size_t t = 0; t < equal.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i)
        equal[t] += parsed->render(json{{"x", 3}}, std::tm{}) == std::string("3,2,1,0");
    });
  for (auto& thread : threads)
    thread.join();
  for (const int count : equal)
    BOOST_TEST(count == 200);
}

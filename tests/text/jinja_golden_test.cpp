#include <boost/test/unit_test.hpp>

#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/text/chat_template.hpp"
#include "runtime/text/jinja/program.hpp"

using namespace tokenrouter;
using json = nlohmann::ordered_json;

namespace {

const std::string folder = "tests/data/jinja/";

json golden(const std::string& name) {
  std::ifstream stream(folder + name);
  return json::parse(stream);
}

/// The time that the goldens were rendered at.
std::tm golden_time() {
  std::tm now{};
  now.tm_year = 125;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 13;
  now.tm_min = 5;
  now.tm_sec = 9;
  now.tm_wday = 6;
  now.tm_yday = 206;
  return now;
}

result<std::string> rendered(const std::string& source, const json& context) {
  const auto parsed = jinja::program::parse(source, "T");
  if (!parsed)
    return tl::unexpected(parsed.error());
  return parsed->render(context, golden_time());
}

struct tally {
  int equal = 0;
  int refused = 0;
};

/// Each template becomes the recorded text, or fails where Jinja2 does.
tally compare_all(const json& cases) {
  tally out;
  for (const auto& one : cases) {
    const auto got = rendered(one["template"], one["context"]);
    BOOST_TEST_CONTEXT(one.dump()) {
      BOOST_TEST(got.has_value() == one.contains("want"),
                 (got ? "rendered: " + *got : got.error().message));
      if (!got || !one.contains("want")) {
        ++out.refused;
        continue;
      }
      BOOST_TEST(*got == one["want"].get<std::string>());
      ++out.equal;
    }
  }
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(each_feature_renders_as_jinja2_renders_it) {
  const tally seen = compare_all(golden("features.json"));
  BOOST_TEST(seen.equal > 110);
  BOOST_TEST(seen.refused > 60);
}

BOOST_AUTO_TEST_CASE(random_templates_render_as_jinja2_renders_them) {
  const tally seen = compare_all(golden("random.json"));
  BOOST_TEST(seen.equal == 340);
  BOOST_TEST(seen.refused == 60);
}

BOOST_AUTO_TEST_CASE(conversations_render_as_transformers_renders_them) {
  const json all = golden("chat.json");
  const std::tm now = golden_time();
  std::map<std::string, chat_template> templates;
  int equal = 0, refused = 0;
  for (const auto& one : all["cases"]) {
    const std::string name = one["template"];
    if (!templates.contains(name)) {
      std::ifstream stream(folder + "templates/" + name);
      const std::string source{std::istreambuf_iterator<char>(stream), {}};
      const auto parsed = chat_template::parse(source, name);
      BOOST_REQUIRE_MESSAGE(parsed, (parsed ? "" : parsed.error().message));
      templates.emplace(name, *parsed);
    }
    json more = all["special_tokens"];
    more.update(all["more"][one["more"].get<std::size_t>()]);
    const auto& messages = all["conversations"][one["messages"].get<std::size_t>()];
    const auto got =
        templates.at(name).render_json(messages, all["tools"][one["tools"].get<std::size_t>()],
                                       more, one["add_generation_prompt"].get<bool>(), &now);
    BOOST_TEST_CONTEXT(one.dump() + messages.dump()) {
      BOOST_TEST(got.has_value() == one.contains("want"),
                 (got ? "rendered: " + *got : got.error().message));
      if (got && one.contains("want")) {
        BOOST_TEST(*got == one["want"].get<std::string>());
        ++equal;
      } else {
        ++refused;
      }
    }
  }
  BOOST_TEST(templates.size() == 10u);
  BOOST_TEST(equal > 500);
  BOOST_TEST(refused > 50);
}

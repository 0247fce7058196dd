#include "runtime/text/jinja/program.hpp"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "runtime/text/jinja/interpreter.hpp"
#include "runtime/text/jinja/lexer.hpp"
#include "runtime/text/jinja/parser.hpp"

namespace tokenrouter::jinja {

struct program::parts {
  std::string where;
  block body;
  std::set<std::string, std::less<>> names; ///< every name token
};

namespace {

tl::unexpected<error> failed(const std::string& where, const fault& f) {
  const std::string line = f.line == 0 ? "" : ":" + std::to_string(f.line);
  return fail(f.code, where + line + ": " + f.what);
}

} // namespace

program::program(std::unique_ptr<const parts> p) : parts_(std::move(p)) {}
program::program(program&&) noexcept = default;
program& program::operator=(program&&) noexcept = default;
program::~program() = default;

result<program> program::parse(std::string_view source, std::string where) {
  auto made = std::make_unique<parts>();
  try {
    made->body = parse_template(source);
    for (token& t : tokenize(source))
      if (t.kind == token_kind::name)
        made->names.insert(std::move(t.text));
  } catch (fault& f) {
    f.code = errc::malformed;
    return failed(where, f);
  } catch (const std::exception& e) {
    return fail(errc::internal, where + ": " + e.what());
  }
  made->where = std::move(where);
  return program(std::move(made));
}

result<std::string> program::render(const nlohmann::ordered_json& given, const std::tm& now) const {
  try {
    std::vector<std::pair<std::string, value>> names;
    for (const auto& [name, v] : given.items())
      names.emplace_back(name, from_json(v));
    return interpreter(now).run(parts_->body, std::move(names));
  } catch (const fault& f) {
    return failed(parts_->where, f);
  } catch (const std::exception& e) {
    return fail(errc::internal, parts_->where + ": " + e.what());
  }
}

bool program::mentions(std::string_view name) const {
  return parts_->names.contains(name);
}

} // namespace tokenrouter::jinja

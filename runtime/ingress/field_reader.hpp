#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "runtime/ingress/api_error.hpp"

namespace tokenrouter {

/// Reads the fields of one JSON object and remembers which were read. The first fault stays; a
/// field that is null counts as left out.
class field_reader {
 public:
  /// `object` outlives the reader; `path` stands before its fields' names in messages, e.g.
  /// "stream_options.".
  explicit field_reader(const nlohmann::json& object, std::string path = "");

  /// The field's value; null if it is left out.
  const nlohmann::json* take(const char* field);

  std::optional<double> number(const char* field, double low, double high);
  std::optional<std::int64_t> whole(const char* field, std::int64_t low, std::int64_t high);
  std::optional<bool> flag(const char* field);
  std::optional<std::string> text(const char* field);

  /// Fields that clients send with a value that changes nothing: `neutral` is accepted, any other
  /// value is a fault that says the field is not supported.
  void accept_only(const char* field, const nlohmann::json& neutral);

  void fault(const std::string& field, const std::string& what);
  void fault(api_error x);

  /// Every field that was not read is a fault; all are named.
  void refuse_others();

  const std::optional<api_error>& first_fault() const { return fault_; }
  std::string name_of(std::string_view field) const { return path_ + std::string(field); }

 private:
  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string, std::less<>> seen_;
  std::optional<api_error> fault_;
};

/// One object from a body. Errors: not JSON, not valid UTF-8, too deep, not an object.
api_result<nlohmann::json> parse_object(const std::string& body);

/// The same once more, with the members of every object in their order. `parsed`: by parse_object.
/// Error: an object with more than limits::json_members_max members, which this form finds one by
/// one.
api_result<nlohmann::ordered_json> parse_ordered(const nlohmann::json& parsed,
                                                 std::string_view body);

} // namespace tokenrouter

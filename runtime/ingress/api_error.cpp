#include "runtime/ingress/api_error.hpp"

#include <nlohmann/json.hpp>

namespace tokenrouter {

namespace {

const char* type_of(unsigned status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 404:
    return "not_found_error";
  case 429:
    return "rate_limit_error";
  case 503:
    return "service_unavailable_error";
  default:
    return status < 500 ? "invalid_request_error" : "server_error";
  }
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

} // namespace

std::string error_body(const api_error& x) {
  nlohmann::ordered_json body;
  body["error"] = {{"message", x.message},
                   {"type", type_of(x.status)},
                   {"param", text_or_null(x.param)},
                   {"code", text_or_null(x.code)}};
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

api_error to_api_error(const error& x, const std::string& param) {
  switch (x.code) {
  case errc::invalid_argument:
    return {400, x.message, param, "", 0};
  case errc::capacity:
    return {400, x.message, param, "context_length_exceeded", 0};
  case errc::unavailable:
    return {503, x.message, "", "unavailable", 1};
  case errc::cancelled:
    return {503, x.message, "", "cancelled", 1};
  default:
    return {500, x.message, "", "", 0};
  }
}

tl::unexpected<api_error> bad_field(const std::string& field, const std::string& what) {
  return tl::unexpected(api_error{400, "'" + field + "' " + what, field, "", 0});
}

} // namespace tokenrouter

#include "runtime/config/read_serve.hpp"

#include <optional>

namespace tokenrouter {

namespace {

constexpr std::uint64_t day_ms = 86'400'000;

template <class T>
void take(const std::optional<std::uint64_t>& from, T& to) {
  if (from)
    to = static_cast<T>(*from);
}

} // namespace

void read_serve(const yaml_view& view, serve_settings& out) {
  view.check_names("serve");
  if (const auto host = view.child("host").text())
    out.host = *host;
  if (const auto name = view.child("model_name").text())
    out.model_name = *name;
  take(view.child("port").whole(0, 65'535), out.port);
  take(view.child("threads").whole(1, 64), out.threads);
  take(view.child("requests_max").whole(1, 1'000'000), out.requests_max);
  take(view.child("connections_max").whole(1, 1'000'000), out.connections_max);
  take(view.child("header_bytes_max").whole(256, 1u << 20), out.header_bytes_max);
  take(view.child("body_bytes_max").whole(1, 1u << 30), out.body_bytes_max);
  take(view.child("unsent_bytes_max").whole(1024, 1u << 30), out.unsent_bytes_max);
  take(view.child("read_timeout_ms").whole(1, day_ms), out.read_timeout_ms);
  take(view.child("idle_timeout_ms").whole(1, day_ms), out.idle_timeout_ms);
  take(view.child("write_timeout_ms").whole(1, day_ms), out.write_timeout_ms);
  take(view.child("drain_timeout_ms").whole(0, day_ms), out.drain_timeout_ms);
  take(view.child("step_timeout_ms").whole(0, day_ms), out.step_timeout_ms);
}

} // namespace tokenrouter

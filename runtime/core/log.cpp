#include "runtime/core/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>

namespace tokenrouter {

void init_log(rank_id rank, std::string_view level) {
  spdlog::drop("tokenrouter"); // of a job that ran before in this process
  auto logger = spdlog::stderr_logger_mt("tokenrouter");
  logger->set_pattern("%H:%M:%S.%e %l rank " + std::to_string(rank.value) + ": %v");
  const auto parsed = spdlog::level::from_str(std::string(level));
  const bool unknown = parsed == spdlog::level::off && level != "off";
  logger->set_level(unknown ? spdlog::level::warn : parsed);
  spdlog::set_default_logger(std::move(logger));
}

} // namespace tokenrouter

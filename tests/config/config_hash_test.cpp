#include <boost/test/unit_test.hpp>

#include <functional>
#include <set>

#include "runtime/config/load.hpp"

using namespace tokenrouter;

namespace {

job_config base() {
  job_config config;
  config.models.resize(2);
  config.models[0].name = "a";
  config.models[1].name = "b";
  return config;
}

} // namespace

BOOST_AUTO_TEST_CASE(every_setting_that_peers_share_changes_the_hash) {
  const std::function<void(job_config&)> changes[] = {
      [](job_config&) {},
      [](job_config& c) { c.system.entry_model = "b"; },
      [](job_config& c) { c.system.on_peer_loss = "x"; },
      [](job_config& c) { c.system.heartbeat_ms = 1; },
      [](job_config& c) { c.system.peer_timeout_ms = 1; },
      [](job_config& c) { c.system.log_level = "info"; },
      [](job_config& c) { c.models.pop_back(); },
      [](job_config& c) { std::swap(c.models[0], c.models[1]); },
      [](job_config& c) { c.models[0].name = "c"; },
      [](job_config& c) { c.models[0].role = "plain"; },
      [](job_config& c) { c.models[1].role = "plain"; },
      [](job_config& c) { c.models[0].ranks = {0}; },
      [](job_config& c) { c.models[1].ranks = {0}; },
      [](job_config& c) {
        c.models[0].ranks = {0, 1};
      },
      [](job_config& c) { c.models[0].compute = compute_type::float32; },
      [](job_config& c) { c.models[0].device = "x"; },
      [](job_config& c) { c.models[0].param_num_billion = 1; },
      [](job_config& c) { c.models[0].max_batch_rows = 1; },
      [](job_config& c) { c.models[0].prefill_chunk_tokens = 1; },
      [](job_config& c) { c.models[0].threads = 1; },
      [](job_config& c) { c.models[0].kv_cache_tokens = 1; },
      [](job_config& c) { c.models[0].kv_cache_mem_fraction = 1; },
      [](job_config& c) { c.method.name = "r2r"; },
      [](job_config& c) { c.method.router = "r"; },
      [](job_config& c) { c.method.switching_strategy = "entropy"; },
      [](job_config& c) { c.method.threshold = 0; },
      [](job_config& c) { c.method.threshold = 1; },
      [](job_config& c) { c.method.thresholds = {0}; },
      [](job_config& c) {
        c.method.thresholds = {0, 0};
      },
      [](job_config& c) { c.trace.directory = "t"; },
  };
  std::set<std::uint64_t> hashes;
  for (const auto& change : changes) {
    job_config config = base();
    change(config);
    hashes.insert(config_hash(config));
  }
  BOOST_TEST(hashes.size() == std::size(changes));
}

BOOST_AUTO_TEST_CASE(where_files_lie_does_not_change_the_hash) {
  job_config here = base(), there = base();
  here.file = "/x/c.yaml";
  there.file = "/y/c.yaml";
  here.models[0].path = "/x/a";
  there.models[0].path = "/y/a";
  here.models[0].mark = {"/x/c.yaml", 3};
  here.method.router = "/x/r";
  there.method.router = "/y/r";
  here.trace.directory = "/x/t";
  there.trace.directory = "/y/t";
  BOOST_TEST(config_hash(here) == config_hash(there));
}

#include <boost/test/unit_test.hpp>

#include <functional>
#include <set>
#include <span>
#include <vector>

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

using change = std::function<void(job_config&)>;

const std::vector<change> method_changes = {
    [](job_config& c) { c.method.name = "r2r"; },
    [](job_config& c) { c.method.router = "r"; },
    [](job_config& c) { c.method.library = "l"; },
    [](job_config& c) { c.method.parameters.switching_strategy = "entropy"; },
    [](job_config& c) { c.method.parameters.threshold = 0; },
    [](job_config& c) { c.method.parameters.threshold = 1; },
    [](job_config& c) { c.method.parameters.thresholds = {0}; },
    [](job_config& c) {
      c.method.parameters.thresholds = {0, 0};
    },
    [](job_config& c) { c.method.parameters.weights = {0}; },
    [](job_config& c) { c.method.parameters.aleatoric_threshold = 0; },
    [](job_config& c) { c.method.parameters.epistemic_threshold = 0; },
    [](job_config& c) { c.method.parameters.entropy_threshold = 0; },
    [](job_config& c) { c.method.parameters.momentum_decay_fraction = 0.1; },
    [](job_config& c) { c.method.parameters.quick_to_reference_threshold = 0.1; },
    [](job_config& c) { c.method.parameters.reference_to_quick_threshold = 0.1; },
    [](job_config& c) { c.method.parameters.window_tokens = 7; },
    [](job_config& c) { c.method.parameters.reference_share = 0.1; },
    [](job_config& c) { c.method.parameters.head_form = "unfolded"; },
    [](job_config& c) { c.method.parameters.schedule = "cosine"; },
    [](job_config& c) { c.method.parameters.schedule_start_threshold = 0.1; },
    [](job_config& c) { c.method.parameters.warmup_tokens = 9; },
    [](job_config& c) { c.method.parameters.combine = "compose"; },
    [](job_config& c) { c.method.parameters.defer_token = "d"; },
    [](job_config& c) { c.method.parameters.entropy_unit = "nats"; },
    [](job_config& c) { c.method.parameters.on_return = "keep_own"; },
    [](job_config& c) { c.method.parameters.has_router = true; },
    [](job_config& c) { c.method.parameters.answer_by = "small"; },
    [](job_config& c) { c.method.parameters.thinking = "never"; },
    [](job_config& c) { c.method.parameters.step_tokens_max = 9; },
    [](job_config& c) { c.method.parameters.thinking_tokens_max = 9; },
    [](job_config& c) { c.method.parameters.first_small_steps_count = 9; },
    [](job_config& c) { c.method.parameters.random_mode = "markov"; },
    [](job_config& c) { c.method.parameters.small_to_large_share = 0.1; },
    [](job_config& c) { c.method.parameters.large_to_small_share = 0.1; },
    [](job_config& c) { c.method.parameters.score_source = "hash"; },
    [](job_config& c) { c.method.parameters.score_tail_tokens = 9; },
    [](job_config& c) { c.method.parameters.head_kind = "citer"; },
    [](job_config& c) { c.method.parameters.draft_tokens = 9; },
    [](job_config& c) {
      c.method.parameters.options = {{"a", "b"}};
    },
    [](job_config& c) {
      c.method.parameters.options = {{"a", "c"}};
    },
    [](job_config& c) {
      c.method.parameters.options = {{"c", "b"}};
    },
};

void count_hashes(std::span<const change> changes, std::set<std::uint64_t>& hashes) {
  for (const auto& apply : changes) {
    job_config config = base();
    apply(config);
    hashes.insert(config_hash(config));
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(every_setting_that_peers_share_changes_the_hash) {
  const std::vector<change> changes = {
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
      [](job_config& c) { c.models[0].replicas_count = 2; },
      [](job_config& c) { c.models[0].shards_count = 2; },
      [](job_config& c) { c.models[0].delayed_batching_threshold = {2}; },
      [](job_config& c) { c.models[0].auto_batching = true; },
      [](job_config& c) { c.models[0].drop_kv = true; },
      [](job_config& c) { c.models[0].prefix_cache = false; },
      [](job_config& c) { c.models[0].prefix_fetch = kv_fetch::off; },
      [](job_config& c) { c.models[0].prefix_fetch_min_tokens = 1; },
      [](job_config& c) { c.system.delayed_batching_timeout_ms = 5; },
      [](job_config& c) { c.models[1].ranks = {0}; },
      [](job_config& c) {
        c.models[0].ranks = {0, 1};
      },
      [](job_config& c) { c.models[0].compute = compute_type::float32; },
      [](job_config& c) { c.models[0].device.gpu = true; },
      [](job_config& c) { c.models[0].device.number = 3; },
      [](job_config& c) { c.models[0].dummy_weights = true; },
      [](job_config& c) { c.models[0].one_kernel = true; },
      [](job_config& c) { c.models[0].param_num_billion = 1; },
      [](job_config& c) { c.models[0].max_batch_rows = 1; },
      [](job_config& c) { c.models[0].prefill_chunk_tokens = 1; },
      [](job_config& c) { c.models[0].threads = 1; },
      [](job_config& c) { c.models[0].kv_cache_tokens = 1; },
      [](job_config& c) { c.models[0].kv_cache_mem_fraction = 1; },
      [](job_config& c) { c.trace.directory = "t"; },
  };
  std::set<std::uint64_t> hashes;
  count_hashes(changes, hashes);
  count_hashes(method_changes, hashes);
  BOOST_TEST(hashes.size() == changes.size() + method_changes.size());
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

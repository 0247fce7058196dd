#include "launch/job.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <caf/send.hpp>

#include "launch/host_cores.hpp"
#include "launch/local_models.hpp"
#include "launch/memory_shares.hpp"
#include "launch/rank_card.hpp"
#include "launch/start_table.hpp"
#include "launch/trace_file.hpp"
#include "runtime/config/load.hpp"
#include "runtime/core/log.hpp"
#include "runtime/reactor/affinity.hpp"
#include "runtime/text/incremental_detokenizer.hpp"
#include "runtime/transport/bootstrap.hpp"
#include "runtime/transport/ucx/ucx_transport.hpp"
#include "runtime/wire/codec.hpp"

namespace tokenrouter {

namespace {

constexpr std::uint32_t finalise_deadline_ms = 3000;
constexpr std::uint32_t model_spin_us = 1000;
constexpr std::uint32_t probe_deadline_ms = 300;

/// Text of a request; keeps the tokenizer alive.
class token_text final : public text_stream {
 public:
  explicit token_text(std::shared_ptr<const tokenizer> words)
      : words_(std::move(words)), detokenizer_(*words_) {}
  std::string push(token_id token) override { return detokenizer_.push(token); }
  std::string finish() override { return detokenizer_.finish(); }

 private:
  std::shared_ptr<const tokenizer> words_;
  incremental_detokenizer detokenizer_;
};

/// A job on its way up, on one rank.
struct starting_job {
  config_load loaded;
  std::unique_ptr<bootstrap> launch;
  std::unique_ptr<ucx_transport> wire; ///< null: one rank
  job_plan plan;
  std::vector<rank_card> cards;
};

std::vector<shard_id> shards_on(const job_plan& plan, rank_id rank) {
  std::vector<shard_id> mine;
  for (const auto& one : shards_of(plan))
    if (one.rank == rank)
      mine.push_back(one.shard);
  return mine;
}

/// Everything this rank can find out alone; the error is for the user.
result<void> prepare(starting_job& job, const job_options& options) {
  job.loaded = load_config(options.config_file, options.overrides);
  auto& faults = job.loaded.faults;
  if (faults.empty())
    faults = validate_ranks(job.loaded.config, job.launch->ranks());
  if (!faults.empty())
    return fail(errc::invalid_argument, fault_lines(faults));
  const auto& config = job.loaded.config;
  auto plan = plan_job(config, job.launch->ranks());
  if (!plan)
    return tl::unexpected(plan.error());
  job.plan = std::move(*plan);
  if (job.launch->ranks() == 1)
    return {};
  auto wire = ucx_transport::create(job.launch->rank());
  if (!wire)
    return tl::unexpected(wire.error());
  job.wire = std::move(*wire);
  return {};
}

/// Threads of one model where the config does not say: what the launcher left this rank, less the
/// control thread's core, shared evenly by its models.
std::uint32_t default_threads(const starting_job& job, std::size_t models) {
  std::size_t cores = allowed_cores().size();
  const bool shared = cores == std::thread::hardware_concurrency();
  if (shared)
    cores /= job.launch->ranks_on_host();
  return cores <= models ? 1 : static_cast<std::uint32_t>((cores - 1) / models);
}

std::uint32_t threads_of(const starting_job& job, model_id model, std::size_t models_here) {
  if (job.loaded.config.models[model.value].device.gpu)
    return 1;
  const std::uint32_t asked = job.loaded.config.models[model.value].threads;
  return asked > 0 ? asked : default_threads(job, models_here);
}

rank_card card_of(const starting_job& job, const result<void>& prepared) {
  rank_card card;
  card.protocol_version = protocol_version;
  card.config_hash = job.plan.config_hash;
  card.host = job.launch->host();
  card.allowed_cores = allowed_cores();
  card.memory_bytes = available_memory_bytes();
  const auto mine = shards_on(job.plan, job.launch->rank());
  const bool wants_gpu = std::ranges::any_of(mine, [&](const shard_id& shard) {
    return job.loaded.config.models[shard.replica.model.value].device.gpu;
  });
  if (auto gpus = gpus_here(job.loaded.config))
    card.gpus = std::move(*gpus);
  else if (prepared && wants_gpu) // a host without GPUs may run the job's other models
    card.failure = gpus.error().message;
  const auto cores = look_at_cores(allowed_cores());
  card.host_threads = cores.host_threads;
  card.physical_cores = cores.physical_cores;
  for (const shard_id& shard : mine)
    card.model_threads += threads_of(job, shard.replica.model, mine.size());
  if (!prepared)
    card.failure = prepared.error().message;
  if (job.wire) {
    const auto address = job.wire->address();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(address.data());
    card.address.assign(bytes, bytes + address.size());
  }
  return card;
}

/// Tells every rank this one's card and learns theirs. If any of them can't start, none does.
result<std::vector<rank_card>> exchange_cards(bootstrap& launch, const rank_card& mine) {
  const auto all = launch.allgather(encode(mine));
  if (!all)
    return tl::unexpected(all.error());
  std::vector<rank_card> cards;
  for (const auto& bytes : *all) {
    auto card = decode<rank_card>(bytes);
    if (!card)
      return tl::unexpected(card.error());
    cards.push_back(std::move(*card));
  }
  std::string text;
  for (const auto& line : failures_of(cards))
    text += (text.empty() ? "" : "\n") + line;
  if (!text.empty())
    return fail(errc::invalid_argument, std::move(text));
  return cards;
}

/// Learns who the peers are and connects to them.
result<void> meet(starting_job& job, const rank_card& mine) {
  auto cards = exchange_cards(*job.launch, mine);
  if (!cards)
    return tl::unexpected(cards.error());
  job.cards = std::move(*cards);
  for (std::uint32_t r = 0; r < job.launch->ranks(); ++r) {
    if (r == job.launch->rank().value)
      continue;
    const auto& address = job.cards[r].address;
    const auto* bytes = reinterpret_cast<const std::byte*>(address.data());
    if (auto ok = job.wire->connect({r}, {bytes, address.size()}); !ok)
      return ok;
  }
  return {};
}

/// Hosts and their free memory, as all ranks know them alike.
host_layout layout_of(const std::vector<rank_card>& cards) {
  host_layout layout;
  for (const auto& card : cards)
    add_rank(layout, card.host, card.memory_bytes, card.gpus);
  return layout;
}

thread_layout threads_here(const starting_job& job) {
  std::vector<rank_threads> ranks;
  std::size_t local = 0;
  const auto& mine = job.cards[job.launch->rank().value];
  for (std::size_t r = 0; r < job.cards.size(); ++r) {
    const auto& card = job.cards[r];
    if (card.host != mine.host)
      continue;
    if (r == job.launch->rank().value)
      local = ranks.size();
    ranks.push_back({{card.allowed_cores.begin(), card.allowed_cores.end()}, card.model_threads});
  }
  return plan_threads(ranks, local);
}

result<rank_plan> plan_rank(const starting_job& job, const thread_layout& threads_of_rank) {
  const auto& config = job.loaded.config;
  rank_plan plan;
  plan.self = job.launch->rank();
  plan.ranks = job.launch->ranks();
  const auto layout = layout_of(job.cards);
  const auto shares = share_memory(config, job.plan, layout);
  if (!shares)
    return tl::unexpected(shares.error());
  for (std::size_t i = 0; i < job.plan.models.size(); ++i) {
    const auto& model = job.plan.models[i];
    const double said_billion = config.models[i].param_num_billion;
    plan.admission.push_back(
        {model.name, model.context_tokens_max, 0,
         said_billion > 0 ? said_billion : static_cast<double>(model.weight_bytes) / 2e9});
  }
  const std::size_t models_here = shards_on(job.plan, plan.self).size();
  plan_models(
      config, job.plan, *shares,
      [&](model_id model) { return threads_of(job, model, models_here); },
      threads_of_rank.model_cores, plan);
  plan.make_entry = [&planned = job.plan]() -> std::unique_ptr<const method_entry> {
    auto entry = entry_of(planned);
    check(entry.has_value(), "an entry that was planned can be made");
    return std::move(*entry);
  };
  plan.thresholds = thresholds_of(config);
  plan.automatic = automatic_batching(config, job.plan);
  plan.delay_timeout_us = std::uint64_t{config.system.delayed_batching_timeout_ms} * 1000;
  plan.eos_tokens = job.plan.eos_tokens;
  plan.context_tokens_max = job.plan.context_tokens_max;
  plan.vocab_tokens = job.plan.vocab_tokens;
  plan.greeting = {job.plan.config_hash, job.plan.vocabulary_fingerprint, job.launch->host()};
  plan.heartbeat_us = std::uint64_t{config.system.heartbeat_ms} * 1000;
  plan.peer_timeout_us = std::uint64_t{config.system.peer_timeout_ms} * 1000;
  plan.model_spin_us = threads_of_rank.may_spin ? model_spin_us : 0;
  plan.degrade = config.system.on_peer_loss == "degrade";
  plan.takes_clients = plan.self == rank_id{0};
  plan.make_text = [words = job.plan.words] { return std::make_unique<token_text>(words); };
  if (!config.trace.directory.empty()) {
    trace_origin origin{plan.self, job.launch->host(), {}};
    for (const auto& model : job.plan.models)
      origin.model_names.push_back(model.name);
    plan.open_trace = make_trace_opener(config.trace.directory, std::move(origin));
  }
  return plan;
}

void complain(const starting_job& job, const job_client& client, const std::string& message) {
  if (client.on_failure)
    client.on_failure(message);
  else if (job.launch->rank() == rank_id{0})
    std::fprintf(stderr, "tokenrouter: %s\n", message.c_str());
}

/// Says on the first rank how the job of several ranks stands, and what of it is seldom meant.
void tell_start(const starting_job& job) {
  if (job.launch->rank() != rank_id{0})
    return;
  const auto shares = share_memory(job.loaded.config, job.plan, layout_of(job.cards));
  if (shares && job.cards.size() > 1)
    std::fputs(start_table(job.cards, job.plan, *shares).c_str(), stderr);
  for (const auto& warning : start_warnings(job.cards))
    spdlog::warn("{}", warning);
}

void tell_loss(const job_client& client, const job_loss& loss) {
  if (client.on_failure)
    spdlog::warn("{}", loss.line);
  else
    std::fprintf(stderr, "tokenrouter: %s\n", loss.line.c_str());
  if (client.on_loss)
    client.on_loss(loss);
}

/// The job proper: actors, loop, shutdown.
int run_actors(const starting_job& job, const thread_layout& threads, rank_plan plan,
               const job_client& client) {
  if (threads.control_core >= 0)
    if (auto pinned = pin_this_thread(threads.control_core); !pinned)
      spdlog::warn("control thread runs unpinned: {}", pinned.error().message);
  reactor_config settings;
  caf::actor_system system(settings);
  auto& loop = reactor::of(system);
  loop.set_spin(threads.may_spin ? spin_policy::while_in_flight : spin_policy::never);
  const bool leads = job.launch->rank() == rank_id{0};
  if (leads) {
    plan.on_ready = client.on_ready;
    plan.on_loss = [&client](const job_loss& x) { tell_loss(client, x); };
  }
  rank_actors actors(system, std::move(plan), job.wire.get());
  if (leads) {
    job_view view{job.loaded.config, job.plan, system, actors, {}, job.launch->ranks()};
    for (const auto& model : job.plan.models)
      view.model_names.push_back(model.name);
    if (auto ok = client.start(view); !ok) {
      complain(job, client, ok.error().message);
      caf::anon_send(actors.supervisor(), job_finished{2});
    }
  }
  if (client.on_joined)
    client.on_joined(leads);
  loop.run_until([&] { return actors.end().has_value(); });
  const job_end end = *actors.end();
  if (leads && client.on_end)
    client.on_end(end);
  if (end.tell_user && !client.on_failure)
    std::fprintf(stderr, "tokenrouter: %s\n", end.reason.c_str());
  // MPI can't be finalised without the rank that was lost, and there is nothing to wait for.
  if (!end.reason.empty() && job.launch->uses_mpi()) {
    actors.say_goodbye();
    std::fflush(nullptr);
    std::_Exit(end.exit_code);
  }
  actors.shut_down();
  return end.exit_code;
}

/// From the launcher's word to the last frame; the exit code.
int run_here(starting_job& job, const job_options& options, const job_client& client) {
  const auto prepared = prepare(job, options);
  init_log(job.launch->rank(), job.loaded.config.system.log_level);
  auto card = card_of(job, prepared);
  if (auto met = meet(job, card); !met) {
    complain(job, client, met.error().message);
    return 2;
  }
  const thread_layout threads = threads_here(job);
  auto plan = plan_rank(job, threads);
  card.failure = plan ? "" : plan.error().message;
  if (job.wire)
    card.routes =
        probe_routes(*job.wire, job.launch->rank(), job.launch->ranks(), probe_deadline_ms);
  const auto agreed = exchange_cards(*job.launch, card);
  if (!agreed) {
    complain(job, client, agreed.error().message);
    return 2;
  }
  job.cards = *agreed;
  tell_start(job);
  // Finalising waits for all ranks: a job that may lose some ends its use of MPI while all live.
  if (plan->degrade)
    job.launch->finalise(finalise_deadline_ms, 2);
  return run_actors(job, threads, std::move(*plan), client);
}

} // namespace

std::string fault_lines(const std::vector<config_fault>& faults) {
  std::string text = faults.size() == 1
                         ? "the config has a fault:"
                         : "the config has " + std::to_string(faults.size()) + " faults:";
  for (const auto& fault : faults)
    text += "\n" + to_string(fault);
  return text;
}

int run_job(const job_options& options, const job_client& client) {
  starting_job job;
  auto launch = bootstrap::start(detect_launch_environment());
  if (!launch) {
    if (client.on_failure)
      client.on_failure(launch.error().message);
    else
      std::fprintf(stderr, "tokenrouter: %s\n", launch.error().message.c_str());
    return 2;
  }
  job.launch = std::move(*launch);
  const int code = run_here(job, options, client);
  if (job.wire)
    job.wire->close(ucx_transport::close_deadline_ms);
  job.launch->finalise(finalise_deadline_ms, code);
  return code;
}

} // namespace tokenrouter

#include "runtime/config/load.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <system_error>

#include <yaml-cpp/yaml.h>

#include "runtime/config/config_keys.hpp"
#include "runtime/config/method_keys.hpp"
#include "runtime/config/overrides.hpp"
#include "runtime/config/read_method.hpp"
#include "runtime/config/read_serve.hpp"
#include "runtime/config/validate.hpp"
#include "runtime/config/yaml_view.hpp"
#include "runtime/core/limits.hpp"

namespace tokenrouter {

namespace {

namespace fs = std::filesystem;

constexpr double no_bound = std::numeric_limits<double>::infinity();
constexpr std::size_t model_name_bytes_max = 64;

constexpr std::array<std::string_view, 2> peer_loss_names = {"fail", "degrade"};
constexpr std::array<std::string_view, 6> level_names = {"trace", "debug", "info",
                                                         "warn",  "error", "off"};
constexpr std::array<std::string_view, 2> switch_words = {"true", "false"};
constexpr std::array<std::string_view, 2> load_formats = {"auto", "dummy"};
constexpr std::array<std::string_view, 2> one_kernel_words = {"off", "auto"};
constexpr std::array<std::string_view, 2> handoff_words = {"keep", "drop"};
constexpr std::array<std::string_view, 3> fetch_words = {"auto", "sent", "off"};
constexpr std::array<std::string_view, 2> compute_names = {"bfloat16", "float32"};

template <class T, class U>
void take(const std::optional<U>& from, T& to) {
  if (from)
    to = static_cast<T>(*from);
}

class config_reader {
 public:
  config_reader(job_config& config, config_reading& reading)
      : config_(config), reading_(reading), folder_(config.file.parent_path()) {}

  void read(const YAML::Node& root) {
    const yaml_view top(root, "", root.IsMap() ? 0 : 1, reading_);
    top.check_names("");
    if (!root.IsMap())
      return;
    read_shared(top, shared_);
    read_system(top.child("system"));
    read_models(top.child("models"));
    read_method(top.child("method"));
    const yaml_view trace = top.child("trace");
    trace.check_names("trace");
    read_path(trace.child("directory"), config_.trace.directory);
    const yaml_view serve = top.child("serve");
    read_serve(serve, config_.serve);
    read_path(serve.child("port_file"), config_.serve.port_file);
    read_path(serve.child("api_key_file"), config_.serve.api_key_file);
    fill_defaults();
  }

 private:
  /// Paths of the file start at its folder, those of the command line where the user is.
  void read_path(const yaml_view& view, fs::path& out) {
    const auto text = view.text();
    if (!text)
      return;
    std::error_code gone;
    const bool typed = view.mark().line == 0;
    out = ((typed ? fs::current_path(gone) : folder_) / *text).lexically_normal();
  }

  void read_system(const yaml_view& view) {
    system_settings& system = config_.system;
    system.mark = view.mark();
    view.check_names("system");
    take(view.child("entry_model").text(), system.entry_model);
    take(view.child("method").one_of(method_names()), config_.method.name);
    take(view.child("on_peer_loss").one_of(peer_loss_names), system.on_peer_loss);
    take(view.child("heartbeat_ms").whole(10, 60000), system.heartbeat_ms);
    take(view.child("peer_timeout_ms").whole(50, 600000), system.peer_timeout_ms);
    take(view.child("delayed_batching_timeout_ms").whole(0, 600000),
         system.delayed_batching_timeout_ms);
    take(view.child("log_level").one_of(level_names), system.log_level);
  }

  void read_method(const yaml_view& view) {
    method_settings& method = config_.method;
    method.mark = view.mark();
    view.check_names("method");
    read_path(view.child("router"), method.router);
    read_path(view.child("library"), method.library);
    read_method_parameters(view, method);
  }

  /// The keys that may stand at top level and in a model.
  void read_shared(const yaml_view& view, model_settings& out) {
    if (const auto name = view.child("compute_dtype").one_of(compute_names))
      out.compute = *name == "float32" ? compute_type::float32 : compute_type::bfloat16;
    take(view.child("prefill_chunk_tokens").whole(1, limits::context_tokens_max),
         out.prefill_chunk_tokens);
    take(view.child("max_batch_rows").whole(1, limits::batch_rows_max), out.max_batch_rows);
    take(view.child("threads").whole(0, 1024), out.threads);
    if (const auto word = view.child("kv_at_handoff").one_of(handoff_words))
      out.drop_kv = *word == "drop";
    if (const auto word = view.child("prefix_cache").one_of(switch_words))
      out.prefix_cache = *word == "true";
    if (const auto word = view.child("prefix_fetch").one_of(fetch_words))
      out.prefix_fetch = *word == "auto"   ? kv_fetch::any_way
                         : *word == "sent" ? kv_fetch::sent
                                           : kv_fetch::off;
    take(view.child("prefix_fetch_min_tokens").whole(1, limits::context_tokens_max),
         out.prefix_fetch_min_tokens);

    const yaml_view cache = view.child("kv_cache");
    if (!cache.present())
      return;
    cache.check_names(view.path().empty() ? "kv_cache" : "models.NAME.kv_cache");
    const yaml_view tokens = cache.child("tokens"), fraction = cache.child("mem_fraction");
    out.kv_cache_tokens = 0;
    out.kv_cache_mem_fraction = 0;
    take(tokens.whole(limits::block_tokens, std::uint64_t{1} << 40), out.kv_cache_tokens);
    take(fraction.real(0.001, 1), out.kv_cache_mem_fraction);
    if (tokens.present() && fraction.present())
      cache.fault("has both tokens and mem_fraction; keep one");
  }

  void read_models(const yaml_view& view) {
    if (!view.present()) {
      reading_.fault(view.mark(), "models is missing; name at least one model with its path");
      return;
    }
    view.check_twice();
    const auto names = view.names();
    if (names.empty() && reading_.faults.empty())
      view.fault("is empty; name at least one model with its path");
    if (names.size() > limits::models_max)
      view.fault("has " + std::to_string(names.size()) + " entries, at most " +
                 std::to_string(limits::models_max) + " are supported");
    for (const std::string& name : names)
      read_model(name, view.child(name));
  }

  void read_model(const std::string& name, const yaml_view& view) {
    const bool fits = name.size() <= model_name_bytes_max && !name.empty() &&
                      std::ranges::all_of(name, [](unsigned char c) {
                        return std::isalnum(c) || c == '-' || c == '_' || c == '.';
                      });
    if (!fits)
      view.fault("is not a name for a model: use up to 64 letters, digits, '-', '_' and '.'");
    model_settings model = shared_;
    model.name = name;
    model.mark = view.mark();
    if (view.present())
      view.check_names("models.NAME");
    if (!view.child("path").given())
      view.fault("has no path; give the folder with its config.json and weights");
    read_path(view.child("path"), model.path);
    const bool any_role = config_.method.name == "custom";
    const yaml_view role = view.child("scheduler");
    take(any_role ? role.text() : role.one_of(role_names()), model.role);
    read_thresholds(view.child("delayed_batching_threshold"), model);
    take(view.child("param_num_billion").real(0, no_bound), model.param_num_billion);
    read_device(view, model);
    read_replicas(view, model);
    read_shared(view, model);
    config_.models.push_back(std::move(model));
  }

  static void read_device(const yaml_view& view, model_settings& model) {
    if (const auto text = view.child("device").text()) {
      if (const auto device = parse_device(*text))
        model.device = *device;
      else
        view.child("device").fault("must be cpu, cuda or cuda:N with the GPU's number, not '" +
                                   *text + "'");
    }
    if (const auto format = view.child("load_format").one_of(load_formats))
      model.dummy_weights = *format == "dummy";
    if (const auto word = view.child("one_kernel").one_of(one_kernel_words))
      model.one_kernel = *word == "auto";
    if (model.one_kernel.value_or(false) && !model.device.gpu)
      view.child("one_kernel").fault("is of GPUs: set device: cuda");
    if (model.dummy_weights && !model.device.gpu)
      view.child("load_format").fault("dummy weights are made on a GPU: set device: cuda:0");
  }

  /// `ranks` is a list with a rank for each shard, replica by replica, or one rank for all; or
  /// each replica has a list of its own, of a rank for each of its shards or one for them.
  void read_replicas(const yaml_view& view, model_settings& model) {
    take(view.child("tp_size").whole(1, limits::shards_max), model.shards_count);
    if (model.shards_count > 1 && !model.device.gpu)
      view.child("tp_size").fault("splits a model over GPUs: set device: cuda");
    const std::uint32_t shards = model.shards_count;
    const yaml_view ranks = view.child("ranks");
    const auto listed = ranks.items();
    if (!listed.empty() && listed.front().is_list()) {
      for (const yaml_view& item : listed) {
        const auto some = item.whole_list(0, limits::ranks_max - 1);
        if (some && some->size() != 1 && some->size() != shards)
          item.fault(shards == 1 ? "must name one rank: a replica runs on one"
                                 : "must name one rank, or one for each of the " +
                                       std::to_string(shards) + " shards of a replica");
        else if (some)
          for (std::uint32_t i = 0; i < shards; ++i)
            model.ranks.push_back((*some)[some->size() == 1 ? 0 : i]);
      }
    } else {
      take(ranks.whole_list(0, limits::ranks_max - 1), model.ranks);
      if (ranks.given() && ranks.is_list() && listed.empty())
        ranks.fault("is empty; name a rank or leave it out");
    }
    const auto named = static_cast<std::uint32_t>(model.ranks.size());
    model.replicas_count = std::max(1u, named / shards);
    take(view.child("replicas").whole(1, limits::replicas_max), model.replicas_count);
    if (named > 1 && named != model.replicas_count * shards)
      ranks.fault("names " + std::to_string(named) + " ranks for " +
                  std::to_string(model.replicas_count) + " replicas" +
                  (shards > 1 ? " of " + std::to_string(shards) + " shards" : std::string()) +
                  "; name one for each, one for all, or leave it out");
  }

  void read_thresholds(const yaml_view& view, model_settings& model) {
    if (!view.given())
      return;
    if (view.is_list()) {
      take(view.whole_list(1, limits::batch_rows_max), model.delayed_batching_threshold);
      if (view.items().empty())
        view.fault("is empty; give a threshold for each number of live requests, or leave it out");
    } else if (view.is_word("auto")) {
      model.auto_batching = true;
    } else if (const auto one = view.whole(1, limits::batch_rows_max)) {
      model.delayed_batching_threshold = {static_cast<std::uint32_t>(*one)};
    }
  }

  /// A job of one model needs neither method, entry nor role.
  void fill_defaults() {
    const bool single = config_.models.size() == 1;
    if (config_.method.name.empty() && !reading_.marks.contains("system.method")) {
      if (single)
        config_.method.name = "single";
      else if (!config_.models.empty())
        missing("method",
                "with several models it must be one of " + listed(method_names().subspan(1)));
    }
    if (config_.system.entry_model.empty() && !reading_.marks.contains("system.entry_model")) {
      if (single)
        config_.system.entry_model = config_.models[0].name;
      else if (!config_.models.empty())
        missing("entry_model", "name the model that requests start on");
    }
    for (model_settings& model : config_.models) {
      if (!model.role.empty() || reading_.marks.contains("models." + model.name + ".scheduler") ||
          (config_.method.name.empty() && reading_.marks.contains("system.method")))
        continue;
      const method_shape* shape = find_method(config_.method.name);
      if (shape != nullptr && !shape->is_pair() && !shape->is_custom())
        model.role = shape->roles[0];
      else
        reading_.fault(model.mark, "models." + model.name + " has no scheduler; give its role" +
                                       advice_on_role(shape));
    }
  }

  static std::string advice_on_role(const method_shape* shape) {
    if (shape != nullptr && shape->is_pair())
      return ", " + std::string(shape->roles[0]) + " or " + std::string(shape->roles[1]);
    return shape == nullptr ? ", one of " + listed(role_names()) : "";
  }

  void missing(const std::string& key, const std::string& advice) {
    reading_.fault(reading_.mark_of("system"), "system." + key + " is missing; " + advice);
  }

  job_config& config_;
  config_reading& reading_;
  fs::path folder_;
  model_settings shared_; ///< the job-wide defaults
};

} // namespace

std::string to_string(const config_fault& fault) {
  std::string out = fault.where.file;
  if (fault.where.line != 0)
    out += ":" + std::to_string(fault.where.line);
  return out.empty() ? fault.message : out + ": " + fault.message;
}

config_load load_config(const fs::path& file, const std::vector<std::string>& overrides) {
  config_load out;
  config_reading reading;
  reading.file = file.string();
  std::error_code failed;
  out.config.file = fs::absolute(file, failed).lexically_normal();
  try {
    YAML::Node root = YAML::LoadFile(file.string());
    if (root.IsNull())
      root = YAML::Node(YAML::NodeType::Map);
    if (root.IsMap())
      apply_overrides(root, overrides, reading);
    config_reader(out.config, reading).read(root);
    validate(out.config, reading);
  } catch (const YAML::BadFile&) {
    reading.fault({reading.file, 0}, "cannot be read; give the path of a config file");
  } catch (const YAML::Exception& problem) {
    const int line = problem.mark.is_null() ? 0 : problem.mark.line + 1;
    reading.fault({reading.file, static_cast<std::uint32_t>(line)}, "is not YAML: " + problem.msg);
  }
  out.faults = std::move(reading.faults);
  std::ranges::stable_sort(out.faults, [](const config_fault& a, const config_fault& b) {
    return a.where.line < b.where.line;
  });
  return out;
}

} // namespace tokenrouter

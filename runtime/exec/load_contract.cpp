#include "runtime/exec/load_contract.hpp"

#include <string>

#include "runtime/core/limits.hpp"

namespace tokenrouter {

result<model_config> load_fitting_config(const load_options& options) {
  auto config = load_model_config(options.model_path);
  if (!config)
    return config;
  if (options.vocab_legal_tokens > config->vocab_tokens)
    return fail(errc::invalid_argument, options.model_path.string() + ": " +
                                            std::to_string(options.vocab_legal_tokens) +
                                            " tokens are to be legal, the model has " +
                                            std::to_string(config->vocab_tokens));
  if (options.heads.size() > limits::heads_max)
    return fail(errc::invalid_argument, std::to_string(options.heads.size()) +
                                            " routing heads for one model, at most " +
                                            std::to_string(limits::heads_max) + " can run");
  return config;
}

std::uint32_t legal_tokens(const load_options& options, const model_config& config) {
  return options.vocab_legal_tokens ? options.vocab_legal_tokens : config.vocab_tokens;
}

} // namespace tokenrouter

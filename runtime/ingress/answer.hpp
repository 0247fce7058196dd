#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ingress/generation_call.hpp"
#include "runtime/text/tokenizer.hpp"

namespace tokenrouter {

/// One continuation as far as it has come.
struct choice_output {
  std::uint32_t index = 0;      ///< prompt · choices_per_prompt + its number there
  std::vector<token_id> prompt; ///< of this choice
  generation_delta all;         ///< everything so far
  std::optional<generation_end> end;
};

/// What answers are made of beside the choices.
struct answer_facts {
  std::string id;
  std::int64_t created_s = 0; ///< Unix time
  std::shared_ptr<const tokenizer> words;
  std::vector<std::string> model_names; ///< index = model_id
};

/// Writes the JSON of one call's answer in the form the client expects. A stream consists of
/// `piece`s and one `last` for each choice, then `closing`.
class answer_format {
 public:
  virtual ~answer_format() = default;

  /// The whole answer; every choice has ended.
  virtual std::string whole(const std::vector<choice_output>& choices) = 0;

  /// Events (JSON each) for what came since the last: `fresh` is part of `choice.all` already.
  virtual void piece(const choice_output& choice, const generation_delta& fresh,
                     std::vector<std::string>& events) = 0;

  /// Events for a choice that has ended.
  virtual void last(const choice_output& choice, std::vector<std::string>& events) = 0;

  /// Events after the last choice.
  virtual void closing(const std::vector<choice_output>& choices,
                       std::vector<std::string>& events) = 0;
};

std::unique_ptr<answer_format> make_openai_answer(const generation_call& call, answer_facts facts);
std::unique_ptr<answer_format> make_generate_answer(const generation_call& call,
                                                    answer_facts facts);

} // namespace tokenrouter

#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/ingress/answer.hpp"

/// Parts of answers that several forms share.
namespace tokenrouter {

using answer_json = nlohmann::ordered_json;

std::string dump(const answer_json& x);

/// The token as text; one that is not UTF-8 by itself is written as "bytes:\xe2\x82".
std::string token_text(const tokenizer& words, token_id token);

/// −inf and NaN have no JSON: they become −9999.
double finite_logprob(float x);

/// "stop", "length", or "error".
std::string finish_text(finish_reason finish);

/// OpenAI's usage of all choices together; a prompt counts once for all its choices.
answer_json usage_json(const generation_call& call, const std::vector<choice_output>& choices);

/// The same of one choice as far as it has come.
answer_json usage_json(const choice_output& choice);

/// Who wrote each token, with the score of the routing decision there; null where none was made.
answer_json routing_json(const answer_facts& facts, std::span<const generated_token> tokens);

answer_json token_ids_json(std::span<const generated_token> tokens);

/// Tokens of the prompt that the entry model found in its prefix cache, at most.
std::uint64_t cached_tokens(const choice_output& choice);

} // namespace tokenrouter

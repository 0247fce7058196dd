#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/ingress/api_error.hpp"
#include "runtime/ingress/generation_call.hpp"
#include "runtime/text/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

namespace tokenrouter {

/// What turning a body into tokens needs. May be shared by threads.
struct call_tools {
  std::shared_ptr<const tokenizer> words;
  /// How chats are written, or why they can't be.
  result<chat_template> form = fail(errc::not_found, "there is no chat template");
  std::string model_name;                 ///< of the job as a whole
  std::vector<std::string> single_models; ///< each may be asked for alone; index = model_id
  double threshold_max = 0; ///< of the routing method; 0: it has none that a call may set

  /// A chat without tools.
  result<std::string> render(const std::vector<chat_message>& messages,
                             const chat_options& options) const {
    return form ? form->render(messages, options) : tl::unexpected(form.error());
  }
};

/// Reads a body. Every field is honoured or refused with a 400 that names it.
api_result<generation_call> parse_chat(const std::string& body, const call_tools& tools);
api_result<generation_call> parse_completion(const std::string& body, const call_tools& tools);
api_result<generation_call> parse_generate(const std::string& body, const call_tools& tools);

} // namespace tokenrouter

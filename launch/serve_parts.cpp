#include "launch/serve_parts.hpp"

#include <algorithm>

namespace tokenrouter {

engine_facts engine_facts_of(const job_view& view) {
  engine_facts facts;
  facts.method = view.config.method.name;
  facts.entry_model = view.model_names.at(view.plan.entry.value);
  facts.context_tokens_max = view.plan.context_tokens_max;
  facts.vocab_tokens = view.plan.vocab_tokens;
  facts.ranks = view.ranks;
  for (std::size_t i = 0; i < view.plan.models.size(); ++i) {
    const auto& planned = view.plan.models[i];
    engine_model model;
    model.name = planned.name;
    model.role = view.config.models[i].role;
    for (std::size_t shard = 0; shard < planned.ranks.size(); shard += planned.shards)
      model.ranks.push_back(planned.ranks[shard].value);
    model.context_tokens_max = planned.context_tokens_max;
    facts.models.push_back(std::move(model));
  }
  return facts;
}

call_tools call_tools_of(const job_view& view) {
  const auto folder = view.config.models[view.plan.entry.value].path;
  call_tools tools;
  tools.words = view.plan.words;
  tools.form = chat_template::load(folder);
  for (std::uint16_t i = 0; i < view.plan.models.size(); ++i) {
    const auto role = role_of(view.plan, {i});
    if (role)
      tools.threshold_max = std::max(tools.threshold_max, (*role)->needs().request_threshold_max);
  }
  tools.model_name =
      view.config.serve.model_name.empty() ? "tokenrouter" : view.config.serve.model_name;
  if (view.model_names.size() > 1)
    tools.single_models = view.model_names;
  return tools;
}

} // namespace tokenrouter

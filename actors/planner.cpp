#include "actors/planner.hpp"

#include "runtime/core/log.hpp"

namespace tokenrouter {

namespace {

std::string text_of(const std::vector<batching_thresholds>& thresholds) {
  std::string text;
  for (const auto& list : thresholds) {
    text += text.empty() ? "[" : " [";
    for (std::size_t i = 0; i < list.size(); ++i)
      text += (i == 0 ? "" : ",") + std::to_string(list[i]);
    text += "]";
  }
  return text;
}

} // namespace

planner_actor::behavior_type planner(planner_actor::stateful_pointer<planner_box> self,
                                     planner_options options) {
  self->state.core.emplace(options.config);
  self->state.options = std::move(options);
  return {
      [self](const replica_report& x) {
        auto& box = self->state;
        box.core->add(x);
        const auto thresholds = box.core->plan();
        if (!thresholds)
          return;
        spdlog::info("batching thresholds by live requests: {}", text_of(*thresholds));
        for (replica_id to : box.options.replicas)
          self->send(box.options.outlet, batching_update{to, *thresholds});
      },
      [self](const replicas_lost& x) {
        auto& box = self->state;
        for (const replica_id lost : x.replicas)
          std::erase(box.options.replicas, lost);
        box.core->start_over();
      },
  };
}

} // namespace tokenrouter

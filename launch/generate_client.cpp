#include "launch/generate_client.hpp"

namespace tokenrouter {

namespace {

using self_pointer = request_client::stateful_pointer<generate_box>;

void report_failed(self_pointer self, std::size_t index) {
  auto& box = self->state;
  request_done done;
  done.client_tag = index;
  done.finish = finish_reason::failed;
  done.failure = box.run->entries[index].failure;
  box.failed = true;
  box.run->observer->on_done(index, done);
}

void submit_more(self_pointer self) {
  auto& box = self->state;
  auto& run = *box.run;
  while (box.under_way < run.concurrency && box.next < run.entries.size()) {
    const std::size_t index = box.next++;
    if (!run.entries[index].failure.message.empty()) {
      report_failed(self, index);
      continue;
    }
    ++box.under_way;
    self->send(run.gateway, run.entries[index].order);
  }
  if (box.under_way == 0 && box.next == run.entries.size()) {
    self->send(run.supervisor, job_finished{static_cast<std::uint8_t>(box.failed ? 1 : 0)});
    self->quit();
  }
}

} // namespace

request_client::behavior_type generate_client(self_pointer self,
                                              std::shared_ptr<generate_run> run) {
  self->state.run = std::move(run);
  submit_more(self);
  return {
      [self](const token_delta& x) { self->state.run->observer->on_delta(x.client_tag, x); },
      [self](const request_done& x) {
        auto& box = self->state;
        --box.under_way;
        box.failed = box.failed || x.finish == finish_reason::failed;
        box.run->observer->on_done(x.client_tag, x);
        submit_more(self);
      },
  };
}

} // namespace tokenrouter

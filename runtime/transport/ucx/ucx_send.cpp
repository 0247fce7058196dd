#include "runtime/core/limits.hpp"
#include "runtime/core/log.hpp"
#include "runtime/transport/ucx/ucx_impl.hpp"

namespace tokenrouter {

namespace {

constexpr std::size_t spare_operations_max = 1024;

} // namespace

std::unique_ptr<ucx_transport::impl::outgoing> ucx_transport::impl::new_operation() {
  if (spare_.empty())
    return std::make_unique<outgoing>();
  auto operation = std::move(spare_.back());
  spare_.pop_back();
  return operation;
}

void ucx_transport::impl::end_operation(std::unique_ptr<outgoing> operation) {
  operation->payload = {};
  if (spare_.size() < spare_operations_max)
    spare_.push_back(std::move(operation));
}

result<void> ucx_transport::impl::send(rank_id to, const frame_header& header,
                                       std::vector<std::byte> payload) {
  auto* there = open_peer(to);
  if (there == nullptr || closed_)
    return fail(errc::unavailable, "no way to rank " + std::to_string(to.value) + " from rank " +
                                       std::to_string(self_.value));
  if (payload.size() > limits::frame_bytes_max)
    return fail(errc::capacity, "a frame of " + std::to_string(payload.size()) +
                                    " bytes is longer than any may be");
  auto operation = new_operation();
  operation->head = {source_, there->sent, header};
  operation->payload = std::move(payload);
  operation->to = there;
  operation->owner = this;
  const auto how = there->waiting.empty() ? post(operation) : posted::no_room;
  if (how == posted::failed)
    return fail(errc::unavailable, "UCX refuses to send to rank " + std::to_string(to.value));
  ++there->sent;
  if (how == posted::no_room) {
    there->waiting.push_back(std::move(operation));
    ++waiting_;
  }
  return {};
}

ucx_transport::impl::posted ucx_transport::impl::post(std::unique_ptr<outgoing>& operation) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &impl::on_sent;
  param.user_data = operation.get();
  const auto request =
      ucp_am_send_nbx(operation->to->endpoint, message_id, &operation->head, sizeof operation->head,
                      operation->payload.data(), operation->payload.size(), &param);
  if (request == nullptr) {
    end_operation(std::move(operation));
    return posted::done;
  }
  if (!UCS_PTR_IS_ERR(request)) {
    // UCX calls back when it no longer needs the operation; it is owned by that call from here.
    ++in_flight_;
    ++operation->to->in_flight;
    static_cast<void>(operation.release());
    return posted::done;
  }
  const auto status = UCS_PTR_STATUS(request);
  if (status == UCS_ERR_NO_RESOURCE || status == UCS_ERR_NO_MEMORY)
    return posted::no_room;
  spdlog::error("sending to rank {} failed: {}", operation->to->rank.value,
                ucs_status_string(status));
  return posted::failed;
}

void ucx_transport::impl::on_sent(void* request, ucs_status_t status, void* user) {
  std::unique_ptr<outgoing> operation(static_cast<outgoing*>(user));
  auto* self = operation->owner;
  const bool forgotten = operation->to->endpoint == nullptr;
  if (status != UCS_OK && !forgotten)
    spdlog::error("a frame to rank {} did not leave: {}", operation->to->rank.value,
                  ucs_status_string(status));
  --operation->to->in_flight;
  --(forgotten ? self->stranded_ : self->in_flight_);
  ucp_request_free(request);
  self->end_operation(std::move(operation));
}

std::size_t ucx_transport::impl::flush_waiting() {
  if (waiting_ == 0)
    return 0;
  std::size_t moved = 0;
  for (auto& [source, there] : by_source_)
    while (!there->waiting.empty() && post(there->waiting.front()) != posted::no_room) {
      there->waiting.pop_front();
      --waiting_;
      ++moved;
    }
  return moved;
}

} // namespace tokenrouter

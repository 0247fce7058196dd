#include <cstring>

#include "runtime/core/limits.hpp"
#include "runtime/transport/ucx/ucx_impl.hpp"

namespace tokenrouter {

ucs_status_t ucx_transport::impl::on_message(void* self, const void* header,
                                             std::size_t header_bytes, void* data,
                                             std::size_t data_bytes,
                                             const ucp_am_recv_param_t* param) {
  auto& here = *static_cast<impl*>(self);
  envelope head;
  if (header_bytes != sizeof head) {
    here.gate.drop(here.self_, "it has no envelope (sender unknown)");
    return UCS_OK;
  }
  std::memcpy(&head, header, sizeof head);
  return here.take(head, data, data_bytes, (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
}

ucs_status_t ucx_transport::impl::take(const envelope& head, void* data, std::size_t bytes,
                                       bool by_rendezvous) {
  const auto found = by_source_.find(head.source);
  if (found == by_source_.end()) {
    gate.drop({head.frame.source_rank}, "it comes from a process that is not connected");
    return UCS_OK;
  }
  auto& from = *found->second;
  if (from.endpoint == nullptr)
    return UCS_OK;
  if (head.order < from.received || from.early.contains(head.order) ||
      bytes > limits::frame_bytes_max) {
    gate.drop(from.rank, "its envelope is wrong");
    return UCS_OK;
  }
  if (!by_rendezvous && head.order == from.received) {
    ++from.received;
    gate.pass(from.rank, head.frame, {static_cast<const std::byte*>(data), bytes});
    deliver_ready(from);
    return UCS_OK;
  }
  auto& frame = from.early[head.order];
  frame.frame = head.frame;
  frame.payload_bytes = bytes;
  frame.payload = std::make_unique_for_overwrite<std::byte[]>(bytes);
  if (!by_rendezvous) {
    std::memcpy(frame.payload.get(), data, bytes);
    frame.complete = true;
    return UCS_OK;
  }
  // Fetched after this callback: UCX keeps the descriptor for us.
  announced_.push_back(std::make_unique<rendezvous>(rendezvous{this, &from, head.order, data}));
  return UCS_INPROGRESS;
}

std::size_t ucx_transport::impl::fetch_announced() {
  const auto transfers = std::exchange(announced_, {});
  for (const auto& announced : transfers) {
    auto transfer = std::make_unique<rendezvous>(*announced);
    auto& frame = transfer->from->early.at(transfer->order);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.recv_am = &impl::on_fetched;
    param.user_data = transfer.get();
    const auto request = ucp_am_recv_data_nbx(worker.handle(), transfer->descriptor,
                                              frame.payload.get(), frame.payload_bytes, &param);
    ++fetching_;
    if (request == nullptr)
      finish(std::move(transfer), UCS_OK);
    else if (UCS_PTR_IS_ERR(request))
      finish(std::move(transfer), UCS_PTR_STATUS(request));
    else
      static_cast<void>(transfer.release()); // comes back in on_fetched
  }
  return transfers.size();
}

void ucx_transport::impl::on_fetched(void* request, ucs_status_t status, std::size_t, void* user) {
  std::unique_ptr<rendezvous> transfer(static_cast<rendezvous*>(user));
  ucp_request_free(request);
  auto* self = transfer->owner;
  self->finish(std::move(transfer), status);
}

void ucx_transport::impl::finish(std::unique_ptr<rendezvous> transfer, ucs_status_t status) {
  --fetching_;
  auto& frame = transfer->from->early.at(transfer->order);
  frame.complete = true;
  frame.failed = status != UCS_OK;
  deliver_ready(*transfer->from);
}

void ucx_transport::impl::deliver_ready(peer& from) {
  while (!from.early.empty()) {
    const auto first = from.early.begin();
    if (first->first != from.received || !first->second.complete)
      return;
    const auto frame = std::move(first->second);
    from.early.erase(first);
    ++from.received;
    if (from.endpoint == nullptr)
      continue;
    if (frame.failed)
      gate.drop(from.rank, "its data could not be fetched");
    else
      gate.pass(from.rank, frame.frame, {frame.payload.get(), frame.payload_bytes});
  }
}

} // namespace tokenrouter

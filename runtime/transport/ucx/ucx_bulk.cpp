#include "runtime/transport/ucx/ucx_bulk.hpp"

#include <algorithm>

namespace tokenrouter {

void ucx_bulk::send(rank_id to, std::uint64_t tag, std::uint64_t operation,
                    std::shared_ptr<bulk_buffer> buffer) {
  const auto endpoint = endpoint_(to);
  if (endpoint == nullptr) {
    ended_.emplace_back(operation, false);
    return;
  }
  auto one =
      std::make_unique<transfer>(transfer{this, operation, to, true, nullptr, std::move(buffer)});
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &ucx_bulk::on_sent;
  param.user_data = one.get();
  const auto bytes = one->buffer->bytes();
  const auto request = ucp_tag_send_nbx(endpoint, bytes.data(), bytes.size(), tag, &param);
  post(std::move(one), request, true);
}

void ucx_bulk::receive(rank_id from, std::uint64_t tag, std::uint64_t operation,
                       std::shared_ptr<bulk_buffer> buffer) {
  if (endpoint_(from) == nullptr) {
    ended_.emplace_back(operation, false);
    return;
  }
  auto one = std::make_unique<transfer>(
      transfer{this, operation, from, false, nullptr, std::move(buffer)});
  ucp_tag_recv_info_t info{};
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_RECV_INFO;
  param.cb.recv = &ucx_bulk::on_received;
  param.user_data = one.get();
  param.recv_info.tag_info = &info;
  const auto bytes = one->buffer->bytes();
  const auto request = ucp_tag_recv_nbx(worker_.handle(), bytes.data(), bytes.size(), tag,
                                        ~std::uint64_t{0}, &param);
  post(std::move(one), request, info.length == bytes.size());
}

/// `whole` counts if it is over already.
void ucx_bulk::post(std::unique_ptr<transfer> one, ucs_status_ptr_t request, bool whole) {
  if (request == nullptr || UCS_PTR_IS_ERR(request)) {
    ended_.emplace_back(one->operation, request == nullptr && whole);
    return;
  }
  one->request = request;
  const std::uint64_t operation = one->operation;
  open_.emplace(operation, std::move(one));
}

void ucx_bulk::on_sent(void* request, ucs_status_t status, void* user) {
  auto* one = static_cast<transfer*>(user);
  one->owner->finish(one, status == UCS_OK);
  ucp_request_free(request);
}

void ucx_bulk::on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                           void* user) {
  auto* one = static_cast<transfer*>(user);
  one->owner->finish(one, status == UCS_OK && info->length == one->buffer->bytes().size());
  ucp_request_free(request);
}

void ucx_bulk::finish(transfer* one, bool whole) {
  const auto open = open_.find(one->operation);
  if (open != open_.end() && open->second.get() == one) {
    ended_.emplace_back(one->operation, whole);
    open_.erase(open);
    return;
  }
  std::erase_if(stranded_, [one](const auto& other) { return other.get() == one; });
}

/// UCX takes a receive back at once if nothing of it has come yet.
void ucx_bulk::strand(transfer_map::iterator at) {
  transfer* one = at->second.get();
  stranded_.push_back(std::move(at->second));
  open_.erase(at);
  if (!one->out)
    ucp_request_cancel(worker_.handle(), one->request);
}

void ucx_bulk::cancel(std::uint64_t operation) {
  std::erase_if(ended_, [operation](const auto& one) { return one.first == operation; });
  if (const auto at = open_.find(operation); at != open_.end())
    strand(at);
}

void ucx_bulk::forget(rank_id peer) {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto here = at++;
    if (here->second->peer != peer)
      continue;
    ended_.emplace_back(here->first, false);
    strand(here);
  }
}

std::size_t ucx_bulk::deliver() {
  const auto ended = std::exchange(ended_, {});
  for (const auto& [operation, whole] : ended)
    if (sink_)
      sink_(operation, whole);
  return ended.size();
}

void ucx_bulk::close() {
  sink_ = {};
  ended_.clear();
  for (auto at = open_.begin(); at != open_.end();) {
    const auto here = at++;
    if (!here->second->out)
      strand(here);
  }
}

} // namespace tokenrouter

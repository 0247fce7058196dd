#include "runtime/transport/ucx/ucx_transport.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "runtime/core/check.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/log.hpp"
#include "runtime/transport/ucx/ucx_impl.hpp"

namespace tokenrouter {

namespace {

/// Before UCX's address in what `address()` gives.
struct address_head {
  std::uint32_t magic = 0x41585254; // "TRXA"
  std::uint32_t rank = 0;
  std::uint64_t source = 0;
};

constexpr std::uint64_t stranded_look_ns = 1'000'000;

std::uint64_t random_source() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

} // namespace

result<void> ucx_transport::impl::open(rank_id self) {
  if (auto opened = worker.open(); !opened)
    return opened;
  const auto ucx_address = worker.address();
  if (!ucx_address)
    return tl::unexpected(ucx_address.error());
  self_ = self;
  source_ = random_source();
  address_head head;
  head.rank = self.value;
  head.source = source_;
  address_.resize(sizeof head);
  std::memcpy(address_.data(), &head, sizeof head);
  address_.insert(address_.end(), ucx_address->begin(), ucx_address->end());
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = message_id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = &impl::on_message;
  handler.arg = this;
  if (const auto status = ucp_worker_set_am_recv_handler(worker.handle(), &handler);
      status != UCS_OK)
    return tl::unexpected(ucx_error(errc::unavailable, "UCX has no active messages", status));
  return {};
}

result<void> ucx_transport::impl::connect(rank_id rank, std::span<const std::byte> address) {
  check(rank != self_, "a rank does not connect to itself");
  check(open_peer(rank) == nullptr, "there is a way to that rank already");
  const auto name = "rank " + std::to_string(rank.value);
  address_head head;
  if (address.size() <= sizeof head)
    return fail(errc::malformed, "the address of " + name + " is cut short");
  std::memcpy(&head, address.data(), sizeof head);
  if (head.magic != address_head{}.magic)
    return fail(errc::malformed, "the address of " + name + " is not one; is it another build?");
  if (head.rank != rank.value)
    return fail(errc::mismatch,
                "the address of " + name + " is that of rank " + std::to_string(head.rank));
  if (by_source_.contains(head.source))
    return fail(errc::mismatch, name + " was forgotten and comes back with its old address");
  const auto endpoint = worker.connect(address.subspan(sizeof head));
  if (!endpoint)
    return fail(endpoint.error().code, name + ": " + endpoint.error().message);
  auto added = std::make_unique<peer>();
  added->rank = rank;
  added->endpoint = *endpoint;
  by_rank_[rank.value] = added.get();
  by_source_.emplace(head.source, std::move(added));
  return {};
}

ucx_transport::impl::peer* ucx_transport::impl::open_peer(rank_id rank) const {
  const auto found = by_rank_.find(rank.value);
  return found == by_rank_.end() || found->second->endpoint == nullptr ? nullptr : found->second;
}

std::size_t ucx_transport::impl::progress() {
  check(!in_progress_, "progress() was called from its own frame sink");
  if (closed_)
    return 0;
  in_progress_ = true;
  auto events = flush_waiting();
  events += ucp_worker_progress(worker.handle());
  if (!announced_.empty())
    events += fetch_announced();
  events += bulk.deliver();
  in_progress_ = false;
  return events;
}

bool ucx_transport::impl::prepare_sleep() {
  if (closed_)
    return true;
  if (waiting_ > 0 || !bulk.idle())
    return false;
  if (worker.arm())
    return true;
  // UCX does not sleep while a send to a full queue is pending, and the queue of a dead process
  // stays full: only look at the others now and then.
  if (stranded_ + bulk.stranded() == 0)
    return false;
  worker.arm_timer(stranded_look_ns);
  return true;
}

std::string ucx_transport::impl::describe(rank_id rank) const {
  const auto* there = open_peer(rank);
  return there == nullptr || closed_ ? "ucx (closed)" : describe_endpoint(there->endpoint);
}

// Without error handling, which would cost shared memory, UCX can't close an endpoint whose peer is
// gone: it stays, unused, until the worker goes.
void ucx_transport::impl::forget(rank_id rank) {
  auto* gone = open_peer(rank);
  if (gone == nullptr)
    return;
  gone->endpoint = nullptr;
  waiting_ -= gone->waiting.size();
  gone->waiting.clear();
  in_flight_ -= gone->in_flight;
  stranded_ += gone->in_flight;
  bulk.forget(rank);
}

ucp_ep_h ucx_transport::impl::endpoint_of(rank_id rank) const {
  const auto* there = closed_ ? nullptr : open_peer(rank);
  return there == nullptr ? nullptr : there->endpoint;
}

bool ucx_transport::impl::progress_until(std::uint64_t deadline_ns,
                                         const std::function<bool()>& done) {
  while (!done()) {
    if (monotonic_ns() > deadline_ns)
      return false;
    flush_waiting();
    ucp_worker_progress(worker.handle());
    fetch_announced();
  }
  return true;
}

bool ucx_transport::impl::close(std::uint32_t deadline_ms) {
  check(!in_progress_, "close() was called from a frame sink");
  if (std::exchange(closed_, true) || worker.handle() == nullptr)
    return true;
  gate.open([](rank_id, const frame_header&, std::span<const std::byte>) {});
  const auto deadline_ns = monotonic_ns() + std::uint64_t{deadline_ms} * 1'000'000;
  bulk.close();
  const bool sent =
      progress_until(deadline_ns, [this] { return pending_sends() + bulk.in_flight() == 0; });
  std::vector<ucs_status_ptr_t> flushes;
  const ucp_request_param_t param{};
  for (const auto& [source, there] : by_source_)
    if (there->endpoint != nullptr)
      if (const auto request = ucp_ep_flush_nbx(there->endpoint, &param);
          request != nullptr && !UCS_PTR_IS_ERR(request))
        flushes.push_back(request);
  // A peer that is gone by now acknowledges nothing; what it had to know the links made sure of.
  const bool flushed = progress_until(deadline_ns, [&] {
    std::erase_if(flushes, [](ucs_status_ptr_t request) {
      const bool done = ucp_request_check_status(request) != UCS_INPROGRESS;
      if (done)
        ucp_request_free(request);
      return done;
    });
    return flushes.empty() && fetching_ + announced_.size() == 0;
  });
  if (!sent)
    spdlog::warn("rank {}: not everything left before the network was closed", self_.value);
  abandoned_ = !sent || !flushed || stranded_ + bulk.stranded() > 0;
  return sent && flushed;
}

ucx_transport::ucx_transport(std::unique_ptr<impl> state) : impl_(std::move(state)) {}

result<std::unique_ptr<ucx_transport>> ucx_transport::create(rank_id self) {
  auto state = std::make_unique<impl>();
  if (auto opened = state->open(self); !opened)
    return tl::unexpected(opened.error());
  return std::unique_ptr<ucx_transport>(new ucx_transport(std::move(state)));
}

// What UCX may still read or write stays for the rest of the process; freeing the worker might also
// wait for a peer that is gone.
ucx_transport::~ucx_transport() {
  impl_->close(close_deadline_ms);
  static std::vector<impl*> kept;
  if (impl_->abandoned())
    kept.push_back(impl_.release());
}

std::vector<std::byte> ucx_transport::address() const {
  return impl_->address();
}

result<void> ucx_transport::connect(rank_id peer, std::span<const std::byte> address) {
  return impl_->connect(peer, address);
}

bool ucx_transport::close(std::uint32_t deadline_ms) {
  return impl_->close(deadline_ms);
}

std::uint64_t ucx_transport::dropped_frames() const {
  return impl_->gate.dropped_frames();
}

void ucx_transport::on_frame(frame_sink sink) {
  impl_->gate.open(std::move(sink));
}

result<void> ucx_transport::send(rank_id to, const frame_header& header,
                                 std::vector<std::byte> payload) {
  return impl_->send(to, header, std::move(payload));
}

std::size_t ucx_transport::progress() {
  return impl_->progress();
}
int ucx_transport::event_fd() const {
  return impl_->worker.event_fd();
}
bool ucx_transport::prepare_sleep() {
  return impl_->prepare_sleep();
}
std::size_t ucx_transport::pending_sends() const {
  return impl_->pending_sends();
}
std::string ucx_transport::describe(rank_id peer) const {
  return impl_->describe(peer);
}
bulk_wire& ucx_transport::bulk() {
  return impl_->bulk;
}
void ucx_transport::forget(rank_id peer) {
  impl_->forget(peer);
}

} // namespace tokenrouter

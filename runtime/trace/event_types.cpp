#include "runtime/trace/event_types.hpp"

#include <cstddef>

#include "runtime/core/check.hpp"

namespace tokenrouter {

namespace {

struct field {
  const char* name;
  std::size_t offset;
  hid_t type;
};

template <std::size_t N>
h5_id compound(std::size_t bytes, const field (&fields)[N]) {
  h5_id type(H5Tcreate(H5T_COMPOUND, bytes), H5Tclose);
  for (const auto& f : fields)
    check(H5Tinsert(type.get(), f.name, f.offset, f.type) >= 0, "an event's fields do not overlap");
  return type;
}

#define TR_FIELD(row, name, type)                                                                  \
  field {                                                                                          \
#name, offsetof(row, name), type                                                               \
  }

} // namespace

h5_id event_type<token_event>::make() {
  const field fields[] = {
      TR_FIELD(token_event, time_us, H5T_NATIVE_UINT64),
      TR_FIELD(token_event, request, H5T_NATIVE_UINT64),
      TR_FIELD(token_event, position, H5T_NATIVE_UINT32),
      TR_FIELD(token_event, token, H5T_NATIVE_INT32),
      TR_FIELD(token_event, turn, H5T_NATIVE_UINT32),
      TR_FIELD(token_event, score, H5T_NATIVE_FLOAT),
      TR_FIELD(token_event, logprob, H5T_NATIVE_FLOAT),
      TR_FIELD(token_event, model, H5T_NATIVE_UINT16),
      TR_FIELD(token_event, finish, H5T_NATIVE_UINT16),
  };
  return compound(sizeof(token_event), fields);
}

h5_id event_type<handoff_event>::make() {
  const field fields[] = {
      TR_FIELD(handoff_event, time_us, H5T_NATIVE_UINT64),
      TR_FIELD(handoff_event, request, H5T_NATIVE_UINT64),
      TR_FIELD(handoff_event, turn, H5T_NATIVE_UINT32),
      TR_FIELD(handoff_event, position, H5T_NATIVE_UINT32),
      TR_FIELD(handoff_event, offset, H5T_NATIVE_UINT32),
      TR_FIELD(handoff_event, tokens, H5T_NATIVE_UINT32),
      TR_FIELD(handoff_event, from_model, H5T_NATIVE_UINT16),
      TR_FIELD(handoff_event, to_model, H5T_NATIVE_UINT16),
      TR_FIELD(handoff_event, side, H5T_NATIVE_UINT16),
      TR_FIELD(handoff_event, kept, H5T_NATIVE_UINT16),
      TR_FIELD(handoff_event, score, H5T_NATIVE_FLOAT),
  };
  return compound(sizeof(handoff_event), fields);
}

h5_id event_type<step_event>::make() {
  const field fields[] = {
      TR_FIELD(step_event, time_us, H5T_NATIVE_UINT64),
      TR_FIELD(step_event, rows, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, proposing_rows, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, tokens, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, prefill_tokens, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, wait_us, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, plan_us, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, turnaround_us, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, step_us, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, route_us, H5T_NATIVE_UINT32),
      TR_FIELD(step_event, model, H5T_NATIVE_UINT16),
  };
  return compound(sizeof(step_event), fields);
}

h5_id event_type<request_event>::make() {
  const field fields[] = {
      TR_FIELD(request_event, time_us, H5T_NATIVE_UINT64),
      TR_FIELD(request_event, request, H5T_NATIVE_UINT64),
      TR_FIELD(request_event, prompt_tokens, H5T_NATIVE_UINT32),
      TR_FIELD(request_event, output_tokens, H5T_NATIVE_UINT32),
      TR_FIELD(request_event, handoffs, H5T_NATIVE_UINT32),
      TR_FIELD(request_event, ttft_us, H5T_NATIVE_UINT32),
      TR_FIELD(request_event, total_us, H5T_NATIVE_UINT64),
      TR_FIELD(request_event, finish, H5T_NATIVE_UINT16),
      TR_FIELD(request_event, fetched_tokens, H5T_NATIVE_UINT32),
  };
  return compound(sizeof(request_event), fields);
}

#undef TR_FIELD

} // namespace tokenrouter

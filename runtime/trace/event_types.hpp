#pragma once

#include "runtime/trace/event.hpp"
#include "runtime/trace/h5_id.hpp"

namespace tokenrouter {

/// HDF5's description of a row, and the name of its dataset. Field names are those of the struct;
/// reserved fields are left out.
template <class Row>
struct event_type;

template <>
struct event_type<token_event> {
  static constexpr const char* dataset = "tokens";
  static h5_id make();
};
template <>
struct event_type<handoff_event> {
  static constexpr const char* dataset = "handoffs";
  static h5_id make();
};
template <>
struct event_type<step_event> {
  static constexpr const char* dataset = "steps";
  static h5_id make();
};
template <>
struct event_type<request_event> {
  static constexpr const char* dataset = "requests";
  static h5_id make();
};

} // namespace tokenrouter

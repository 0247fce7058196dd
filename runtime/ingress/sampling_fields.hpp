#pragma once

#include <string>
#include <vector>

#include "runtime/ingress/call_parser.hpp"
#include "runtime/ingress/field_reader.hpp"

namespace tokenrouter {

/// temperature (1 where it is left out), top_p, top_k (−1 means off), min_p, logit_bias, ignore_eos
/// and stop, as every form of call has them.
void read_sampling(field_reader& in, const call_tools& tools, generation_order& out);

/// The seed under that name; drawn at random if it is left out.
void read_seed(field_reader& in, const char* field, generation_order& out);

/// Penalties and their kin, which are not supported, at the values that switch them off.
void accept_neutral_sampling(field_reader& in);

} // namespace tokenrouter

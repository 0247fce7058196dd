#pragma once

#include <string>
#include <vector>

#include "runtime/ingress/field_reader.hpp"
#include "runtime/ingress/generation_call.hpp"

namespace tokenrouter {

/// temperature, top_p, top_k, min_p, ignore_eos and stop, as every form of call has them.
/// `temperature` is what it is where it is left out. top_k −1 means off.
void read_sampling(field_reader& in, float temperature, generation_order& out);

/// The seed under that name; drawn at random if it is left out.
void read_seed(field_reader& in, const char* field, generation_order& out);

/// Penalties and their kin, which are not supported, at the values that switch them off.
void accept_neutral_sampling(field_reader& in);

} // namespace tokenrouter

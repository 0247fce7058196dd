#include "runtime/exec/heads/head.hpp"

#include "runtime/exec/heads/citer_head.hpp"
#include "runtime/exec/heads/collm_head.hpp"
#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/r2r_head.hpp"

namespace tokenrouter {

result<std::unique_ptr<routing_head>> load_head(const head_spec& spec, std::uint32_t hidden_size) {
  if (spec.kind == "r2r")
    return load_r2r_head(spec, hidden_size);
  if (spec.kind == "citer")
    return load_citer_head(spec, hidden_size);
  if (spec.kind == "collm")
    return load_collm_head(spec, hidden_size);
  return fail(errc::invalid_argument,
              "head kind '" + spec.kind + "' is unknown; known are r2r, citer and collm");
}

result<double> head_threshold(const head_spec& spec) {
  const auto description = read_head_description(spec);
  if (!description)
    return tl::unexpected(description.error());
  if (!description->threshold)
    return fail(errc::not_found, "the description of " + spec.weights.string() +
                                     " has no threshold; set one in the configuration");
  return *description->threshold;
}

} // namespace tokenrouter

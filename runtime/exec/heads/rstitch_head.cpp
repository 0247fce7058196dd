#include "runtime/exec/heads/rstitch_head.hpp"

#include <utility>

#include "runtime/exec/heads/head_file.hpp"
#include "runtime/exec/heads/relu_head.hpp"

namespace tokenrouter {

result<std::unique_ptr<routing_head>> load_rstitch_head(const head_spec& spec,
                                                        std::uint32_t hidden_size) {
  auto file = head_file::open_described(spec);
  if (!file)
    return tl::unexpected(file.error());
  const auto wide = file->extent("mlp.0.weight", 0, 2);
  if (!wide)
    return tl::unexpected(wide.error());
  auto up = file->dense("mlp.0", hidden_size, *wide);
  if (!up)
    return tl::unexpected(up.error());
  auto out = file->dense("linear", *wide, 1);
  if (!out)
    return tl::unexpected(out.error());
  return std::make_unique<relu_head>(std::move(*up), std::move(*out));
}

} // namespace tokenrouter

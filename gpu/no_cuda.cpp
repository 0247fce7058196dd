#include "gpu/cuda_backend.hpp"

namespace tokenrouter {

namespace {

tl::unexpected<error> no_cuda() {
  return fail(errc::unavailable, "this program was built without CUDA: build it where the CUDA "
                                 "toolkit is installed, with -DTOKENROUTER_CUDA=ON");
}

} // namespace

result<std::unique_ptr<backend>> make_cuda_backend(const load_options&, const cuda_options&) {
  return no_cuda();
}

result<std::vector<std::byte>> make_cuda_group() {
  return no_cuda();
}

result<model_memory> estimate_cuda_memory(const load_options&) {
  return no_cuda();
}

} // namespace tokenrouter

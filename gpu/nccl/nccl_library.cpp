#include "gpu/nccl/nccl_library.hpp"

#include <string>

#include "gpu/loaded_library.hpp"

namespace tokenrouter::gpu {
namespace {

result<nccl_functions> find_functions() {
  const loaded_library library({"libnccl.so.2"});
  if (!library)
    return fail(errc::unavailable, "NCCL can't be loaded: " + library.fault() +
                                       "; install libnccl2 or add its folder to LD_LIBRARY_PATH");
  nccl_functions found;
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    library.find(name, function);
    if (!function)
      missing = name;
  };
#define TOKENROUTER_FIND(name) find(#name, found.name)
  TOKENROUTER_FIND(ncclGetUniqueId);
  TOKENROUTER_FIND(ncclCommInitRank);
  TOKENROUTER_FIND(ncclCommDestroy);
  TOKENROUTER_FIND(ncclCommAbort);
  TOKENROUTER_FIND(ncclCommGetAsyncError);
  TOKENROUTER_FIND(ncclGetErrorString);
  TOKENROUTER_FIND(ncclGetLastError);
  TOKENROUTER_FIND(ncclAllReduce);
  TOKENROUTER_FIND(ncclAllGather);
  TOKENROUTER_FIND(ncclGroupStart);
  TOKENROUTER_FIND(ncclGroupEnd);
  TOKENROUTER_FIND(ncclSend);
  TOKENROUTER_FIND(ncclRecv);
#undef TOKENROUTER_FIND
  if (missing)
    return fail(errc::unavailable,
                std::string("libnccl.so.2 lacks ") + missing + "; NCCL 2.14 or newer is needed");
  return found;
}

} // namespace

result<const nccl_functions*> load_nccl() {
  static const auto found = find_functions();
  if (!found)
    return tl::unexpected(found.error());
  return &*found;
}

} // namespace tokenrouter::gpu

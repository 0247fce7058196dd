#pragma once

#include <nccl.h>

#include "runtime/core/error.hpp"

namespace tokenrouter::gpu {

/// NCCL's functions, by their own names; loaded when they are first needed, so that programs start
/// on hosts without it.
struct nccl_functions {
#define TOKENROUTER_FUNCTION(name) decltype(&::name) name = nullptr
  TOKENROUTER_FUNCTION(ncclGetUniqueId);
  TOKENROUTER_FUNCTION(ncclCommInitRank);
  TOKENROUTER_FUNCTION(ncclCommDestroy);
  TOKENROUTER_FUNCTION(ncclCommAbort);
  TOKENROUTER_FUNCTION(ncclCommGetAsyncError);
  TOKENROUTER_FUNCTION(ncclGetErrorString);
  TOKENROUTER_FUNCTION(ncclGetLastError);
  TOKENROUTER_FUNCTION(ncclAllReduce);
  TOKENROUTER_FUNCTION(ncclAllGather);
  TOKENROUTER_FUNCTION(ncclGroupStart);
  TOKENROUTER_FUNCTION(ncclGroupEnd);
  TOKENROUTER_FUNCTION(ncclSend);
  TOKENROUTER_FUNCTION(ncclRecv);
#undef TOKENROUTER_FUNCTION
};

/// Any thread; the same each time. Error: unavailable (the loader's words, and what to do).
result<const nccl_functions*> load_nccl();

} // namespace tokenrouter::gpu

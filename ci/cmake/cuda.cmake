# TOKENROUTER_CUDA: OFF builds without any CUDA header, AUTO uses the toolkit where there is one, ON
# fails without it.
set(TOKENROUTER_CUDA AUTO CACHE STRING "Use the CUDA toolkit: OFF, AUTO or ON")
set_property(CACHE TOKENROUTER_CUDA PROPERTY STRINGS OFF AUTO ON)
set(TOKENROUTER_HAS_CUDA 0)
if(TOKENROUTER_CUDA STREQUAL "AUTO")
  find_package(CUDAToolkit QUIET)
elseif(TOKENROUTER_CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()
if(TOKENROUTER_CUDA AND CUDAToolkit_FOUND)
  set(TOKENROUTER_HAS_CUDA 1)
  message(STATUS "CUDA toolkit ${CUDAToolkit_VERSION}: GPUs are listed by `tokenrouter check`")
endif()

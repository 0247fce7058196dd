include(cuda_architectures)

# TOKENROUTER_CUDA: OFF builds without any CUDA header, AUTO uses the toolkit where there is one, ON
# fails without it.
set(TOKENROUTER_CUDA AUTO CACHE STRING "Use the CUDA toolkit: OFF, AUTO or ON")
set_property(CACHE TOKENROUTER_CUDA PROPERTY STRINGS OFF AUTO ON)
set(TOKENROUTER_HAS_CUDA 0)
# CMake 3.25's own module stops at a library that CUDA 13 no longer has, unless the project is content
# with an older CMake.
set(minimum_version ${CMAKE_MINIMUM_REQUIRED_VERSION})
set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
if(TOKENROUTER_CUDA STREQUAL "AUTO")
  find_package(CUDAToolkit QUIET)
elseif(TOKENROUTER_CUDA)
  find_package(CUDAToolkit REQUIRED)
endif()
set(CMAKE_MINIMUM_REQUIRED_VERSION ${minimum_version})
if(TOKENROUTER_CUDA AND CUDAToolkit_FOUND)
  set(TOKENROUTER_HAS_CUDA 1)
  # Machine code for the cards whose own instructions the kernels use, PTX for all others.
  set(TOKENROUTER_CUDA_ARCHITECTURES "90a;80-virtual" CACHE STRING
      "GPU architectures: machine code (80, 90a, ...) and PTX for any newer card (80-virtual)")
  execute_process(COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} --list-gpu-arch
                  OUTPUT_VARIABLE toolkit_architectures OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REPLACE "\n" ";" toolkit_architectures "${toolkit_architectures}")
  tr_cuda_flags(cuda_target_flags fault "${toolkit_architectures}" ${TOKENROUTER_CUDA_ARCHITECTURES})
  if(fault)
    message(FATAL_ERROR "TOKENROUTER_CUDA_ARCHITECTURES: ${fault}")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  enable_language(CUDA)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  string(REPLACE ";" ", " cuda_targets "${TOKENROUTER_CUDA_ARCHITECTURES}")
  message(STATUS "CUDA toolkit ${CUDAToolkit_VERSION}: models can run on GPUs (${cuda_targets})")
endif()

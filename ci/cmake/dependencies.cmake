# Everything comes from installed packages (ci/setup.sh); nothing is downloaded at configure time.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(Boost 1.74 REQUIRED)
pkg_check_modules(ucx REQUIRED IMPORTED_TARGET ucx)
pkg_check_modules(hdf5 REQUIRED IMPORTED_TARGET hdf5-openmpi)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)

find_path(EXPECTED_INCLUDE_DIR tl/expected.hpp REQUIRED)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)

# Not Eigen3::Eigen itself: our warnings are not for its headers.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
get_target_property(EIGEN3_INCLUDE_DIR Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
add_library(tr_eigen INTERFACE)
target_include_directories(tr_eigen SYSTEM INTERFACE ${EIGEN3_INCLUDE_DIR})

# CAF ships neither a CMake config nor a pkg-config file.
find_path(CAF_INCLUDE_DIR caf/actor_system.hpp REQUIRED)
find_library(CAF_CORE_LIBRARY caf_core REQUIRED)
add_library(caf::core UNKNOWN IMPORTED)
set_target_properties(caf::core PROPERTIES
  IMPORTED_LOCATION ${CAF_CORE_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
target_link_libraries(caf::core INTERFACE Threads::Threads)

# The C interface of MPI only: the C++ bindings would drag in libmpi_cxx.
add_library(tr_mpi INTERFACE)
target_link_libraries(tr_mpi INTERFACE MPI::MPI_C)
target_compile_definitions(tr_mpi INTERFACE OMPI_SKIP_MPICXX=1)

find_package(Torch REQUIRED)
add_library(tr_torch INTERFACE)
target_include_directories(tr_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
# PyTorch's wheels export parts of an old C++ library; ours has to be found before them.
target_link_libraries(tr_torch INTERFACE stdc++ ${TORCH_LIBRARIES})

if(TOKENROUTER_TESTS)
  find_package(Boost 1.74 REQUIRED COMPONENTS unit_test_framework)
endif()

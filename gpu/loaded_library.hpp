#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace tokenrouter::gpu {

/// A shared library that is loaded when it is needed and stays for good, so that programs start on
/// hosts without it.
class loaded_library {
 public:
  /// The first of these names that the loader finds.
  explicit loaded_library(std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!handle_)
        handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle_)
      fault_ = dlerror();
  }

  explicit operator bool() const { return handle_ != nullptr; }

  /// Why it could not be loaded, in the loader's words.
  const std::string& fault() const { return fault_; }

  /// Makes `function` point to what has that name; null if the library has none.
  template <class F>
  void find(const char* name, F*& function) const {
    function = reinterpret_cast<F*>(dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
  std::string fault_;
};

} // namespace tokenrouter::gpu

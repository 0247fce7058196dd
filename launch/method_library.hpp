#pragma once

#include <filesystem>
#include <memory>

#include "runtime/methods/plugin.hpp"

namespace tokenrouter {

/// The shared library of a job with a method of the user's own (runtime/methods/plugin.hpp). Open
/// as long as this object lives; what it made must be gone before. Any thread.
class method_library {
 public:
  /// Errors, each with what to do: not_found (no such file, not a shared library, a library of its
  /// own missing), malformed (an entry point missing), mismatch (built from other headers or by
  /// another compiler).
  static result<std::shared_ptr<const method_library>> open(const std::filesystem::path& file);

  ~method_library();
  method_library(const method_library&) = delete;
  method_library& operator=(const method_library&) = delete;

  /// Errors: the library's, and invalid_argument where the role needs what no model gives.
  role_result make_role(model_id self, const method_topology& topology,
                        const method_parameters& parameters) const;

  /// Requests start on topology.entry where the library has no rule. Errors: the library's.
  entry_result make_entry(const method_topology& topology,
                          const method_parameters& parameters) const;

 private:
  method_library(std::filesystem::path file, void* handle)
      : file_(std::move(file)), handle_(handle) {}

  error about(error what) const;

  std::filesystem::path file_;
  void* handle_; ///< of dlopen; owned
  make_role_function* make_role_ = nullptr;
  make_entry_function* make_entry_ = nullptr; ///< null: none
};

} // namespace tokenrouter

#include "launch/method_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

namespace tokenrouter {

namespace {

template <class Function>
Function* symbol(void* handle, const char* name) {
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

result<void> check_needs(const role_needs& needs) {
  if (needs.heads.size() > limits::heads_max)
    return fail(errc::invalid_argument, fmt::format("needs {} heads; a model runs at most {}",
                                                    needs.heads.size(), limits::heads_max));
  if (!needs.heads.empty() && !has(needs.signals, signal::heads))
    return fail(errc::invalid_argument, "names heads, but signal::heads is not among its signals");
  if (needs.tail_positions < 1 || needs.head_window_positions < 1)
    return fail(errc::invalid_argument, "needs 0 positions; the proposing one counts as 1");
  return {};
}

} // namespace

result<std::shared_ptr<const method_library>>
method_library::open(const std::filesystem::path& file) {
  const auto path = std::filesystem::absolute(file);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return fail(errc::not_found, fmt::format("method.library can't be opened: {}", dlerror()));
  std::shared_ptr<method_library> library(new method_library(path, handle));
  const auto missing = [&](const char* name) {
    return fail(errc::malformed,
                fmt::format("method.library {} has no function {}; end its source with "
                            "TOKENROUTER_METHOD of runtime/methods/plugin.hpp",
                            path.string(), name));
  };
  auto* abi = symbol<method_abi_function>(handle, "tokenrouter_method_abi");
  if (abi == nullptr)
    return missing("tokenrouter_method_abi");
  if (const std::uint64_t theirs = abi(); theirs != method_abi())
    return fail(errc::mismatch,
                fmt::format("method.library {} was built for method interface {:#018x}, but this "
                            "program has {:#018x}; rebuild it with this program's headers",
                            path.string(), theirs, method_abi()));
  library->make_role_ = symbol<make_role_function>(handle, "tokenrouter_make_role");
  if (library->make_role_ == nullptr)
    return missing("tokenrouter_make_role");
  library->make_entry_ = symbol<make_entry_function>(handle, "tokenrouter_make_entry");
  return library;
}

method_library::~method_library() {
  dlclose(handle_);
}

error method_library::about(error what) const {
  what.message = "method.library " + file_.string() + ": " + what.message;
  return what;
}

role_result method_library::make_role(model_id self, const method_topology& topology,
                                      const method_parameters& parameters) const {
  role_result role;
  make_role_(self, topology, parameters, role);
  if (!role)
    return tl::unexpected(about(role.error()));
  const std::string name = "scheduler '" + topology.roles[self.value] + "' ";
  if (*role == nullptr)
    return tl::unexpected(about({errc::internal, name + "was made as a null pointer"}));
  if (const auto ok = check_needs((*role)->needs()); !ok)
    return tl::unexpected(about({ok.error().code, name + ok.error().message}));
  return role;
}

entry_result method_library::make_entry(const method_topology& topology,
                                        const method_parameters& parameters) const {
  if (make_entry_ == nullptr)
    return std::make_unique<fixed_entry>(topology.entry);
  entry_result entry;
  make_entry_(topology, parameters, entry);
  if (!entry)
    return tl::unexpected(about(entry.error()));
  if (*entry == nullptr)
    return tl::unexpected(about({errc::internal, "the entry was made as a null pointer"}));
  return entry;
}

} // namespace tokenrouter

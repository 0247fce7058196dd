#pragma once

#include <filesystem>
#include <string>

#include "tests/support/command.hpp"

namespace tokenrouter::test {

/// The output of a command that has to succeed; throws with it otherwise.
std::string must_run(const std::string& command);

/// What `cmake --install` makes of the build under test, in a folder of its own that was moved
/// after the installation; removed with the object.
class installed_package {
 public:
  installed_package();

  std::filesystem::path prefix() const { return folder_.path() / "moved"; }
  std::filesystem::path share() const { return prefix() / "share/tokenrouter"; }
  std::string program_file() const { return (prefix() / "bin/tokenrouter").string(); }

  /// Beside the package.
  std::string file(const std::string& name) const { return folder_.file(name); }

  /// Builds that folder, which has a CMakeLists.txt, in its subfolder `build`.
  void build(const std::filesystem::path& project) const;

  /// Flags to compile and link with `module`, as pkg-config gives them.
  std::string flags_of(const std::string& module) const;

 private:
  scratch_folder folder_;
};

} // namespace tokenrouter::test

#include "tests/support/package.hpp"

#include <stdexcept>

namespace tokenrouter::test {

namespace fs = std::filesystem;

std::string must_run(const std::string& command) {
  auto run = run_command(command);
  if (run.exit_code != 0)
    throw std::runtime_error(command + "\n" + run.output);
  return std::move(run.output);
}

installed_package::installed_package() {
  const fs::path build = fs::path(test::program()).parent_path();
  must_run("cmake --install " + build.string() + " --prefix " + folder_.file("first"));
  fs::rename(folder_.path() / "first", prefix());
}

void installed_package::build(const fs::path& project) const {
  const std::string build = (project / "build").string();
  must_run("cmake -S " + project.string() + " -B " + build +
           " -DCMAKE_PREFIX_PATH=" + prefix().string() + " && cmake --build " + build);
}

std::string installed_package::flags_of(const std::string& module) const {
  return must_run("PKG_CONFIG_PATH=" + (prefix() / "lib/pkgconfig").string() +
                  " pkg-config --cflags --libs " + module + " | tr -d '\\n'");
}

} // namespace tokenrouter::test

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>

#include "tests/support/command.hpp"

using namespace tokenrouter::test;
namespace fs = std::filesystem;

namespace {

command_result check(const std::string& config, const std::string& more = "") {
  return run_command(program() + " check --config " + config + " " + more);
}

} // namespace

BOOST_AUTO_TEST_CASE(every_config_that_is_shipped_can_be_planned) {
  int configs = 0;
  for (const auto& entry : fs::recursive_directory_iterator("configs")) {
    if (entry.path().extension() != ".yaml")
      continue;
    ++configs;
    const auto run = check(entry.path().string());
    BOOST_TEST(run.exit_code == 0, entry.path().string() << ": " << run.output);
  }
  BOOST_TEST(configs >= 23);
}

BOOST_AUTO_TEST_CASE(a_head_of_another_kind_is_refused) {
  const auto run = check("configs/citer/abacus-xs_abacus-m.yaml",
                         "--set method.router=examples/models/abacus/routers/r2r.safetensors");
  BOOST_TEST(run.exit_code == 2);
  BOOST_TEST((run.output.find("describes a head of kind \"r2r\", but the method asks for "
                              "\"citer\"") != std::string::npos),
             run.output);
}

BOOST_AUTO_TEST_CASE(a_threshold_that_is_left_out_is_the_heads) {
  const scratch_folder scratch;
  for (const char* kind : {"citer", "collm"}) {
    const fs::path routers = fs::absolute("examples/models/abacus/routers");
    fs::copy_file(routers / (std::string(kind) + ".safetensors"),
                  scratch.path() / (std::string(kind) + ".safetensors"));
    std::ofstream(scratch.path() / (std::string(kind) + ".json")) << "{}";
  }
  const auto config = [&](const std::string& method, const std::string& small,
                          const std::string& large, const fs::path& router) {
    const fs::path models = fs::absolute("examples/models/abacus");
    write_file(scratch.file("job.yaml"),
               "system: {entry_model: s, method: " + method +
                   "}\nmodels:\n  s: {path: " + (models / "abacus-xs").string() +
                   ", scheduler: " + small + "}\n  l: {path: " + (models / "abacus-m").string() +
                   ", scheduler: " + large + "}\nmethod: {router: " + router.string() + "}\n");
    return scratch.file("job.yaml");
  };
  const fs::path shipped = fs::absolute("examples/models/abacus/routers/collm.safetensors");
  BOOST_TEST(check(config("co-llm", "collm_base", "collm_assist", shipped)).exit_code == 0);
  // Without one anywhere CITER has a default, Co-LLM none.
  BOOST_TEST(check(config("citer", "citer_slm", "citer_llm", scratch.path() / "citer.safetensors"))
                 .exit_code == 0);
  const auto none =
      check(config("co-llm", "collm_base", "collm_assist", scratch.path() / "collm.safetensors"));
  BOOST_TEST(none.exit_code == 2);
  BOOST_TEST((none.output.find("method.threshold: co-llm needs one") != std::string::npos),
             none.output);
}

BOOST_AUTO_TEST_CASE(a_deferral_token_must_be_the_tokenizers_last) {
  const std::string config = "configs/co-llm/abacus-xs_abacus-m.yaml";
  const scratch_folder scratch;
  std::string text = read_file(config);
  const auto at = text.find("  router:");
  text.erase(at, text.find('\n', at) + 1 - at);
  for (std::size_t i = 0; (i = text.find("../../", i)) != std::string::npos;)
    text.replace(i, 6, fs::current_path().string() + "/");
  write_file(scratch.file("job.yaml"), text);
  // The last one of these tokenizers is an added token, so the job can be planned.
  const auto last = check(scratch.file("job.yaml"), "--set 'method.defer_token=</think>'");
  BOOST_TEST(last.exit_code == 0, last.output);
  const auto inner = check(scratch.file("job.yaml"), "--set 'method.defer_token=<think>'");
  BOOST_TEST(inner.exit_code == 2);
  BOOST_TEST((inner.output.find("must be the last of the tokenizer's 1024") != std::string::npos),
             inner.output);
  const auto none = check(scratch.file("job.yaml"), "--set 'method.defer_token=<|defer|>'");
  BOOST_TEST((none.output.find("has no added token '<|defer|>'") != std::string::npos),
             none.output);
}

#include <filesystem>
#include <fstream>

#include <boost/test/unit_test.hpp>

#include "runtime/exec/cpu/cpu_backend.hpp"
#include "runtime/exec/cpu/kernels.hpp"
#include "tests/exec/cpu/test_models.hpp"
#include "tests/exec/cpu/test_sequence.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

namespace fs = std::filesystem;

/// A random model on disk that a test damages, then tries to load.
struct damaged_model {
  scratch_folder folder;
  model_shape shape;
  tensor_map tensors = random_tensors(shape, 3);

  void write() const {
    write_text(folder.path() / "config.json", config_text(shape));
    write_safetensors(folder.path() / "model.safetensors", tensors);
  }

  load_options options() const {
    load_options o;
    o.model_path = folder.path();
    return o;
  }

  /// Loading and estimating must both refuse, naming all of `words`.
  void expect_refused(errc code, const std::vector<std::string>& words) const {
    const auto loaded = make_cpu_backend(options());
    BOOST_TEST_REQUIRE(!loaded.has_value());
    const auto estimated = estimate_cpu_memory(options());
    BOOST_TEST_REQUIRE(!estimated.has_value());
    BOOST_TEST(estimated.error().message == loaded.error().message);
    BOOST_TEST((loaded.error().code == code), loaded.error().message);
    for (const auto& word : words)
      BOOST_TEST(loaded.error().message.find(word) != std::string::npos,
                 "'" << word << "' in: " << loaded.error().message);
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_missing_tensor_is_named_with_the_shape_wanted) {
  damaged_model m;
  m.tensors.erase("model.layers.1.mlp.up_proj.weight");
  m.write();
  m.expect_refused(errc::mismatch, {m.folder.path().string(), "model.layers.1.mlp.up_proj.weight",
                                    "missing", "[72, 40]"});
}

BOOST_AUTO_TEST_CASE(a_wrong_shape_is_named_beside_the_one_wanted) {
  damaged_model m;
  auto& tensor = m.tensors["model.layers.0.self_attn.k_proj.weight"];
  tensor.shape = {40, 48};
  m.write();
  m.expect_refused(errc::mismatch, {"model.safetensors", "model.layers.0.self_attn.k_proj.weight",
                                    "[40, 48]", "[48, 40]"});
}

BOOST_AUTO_TEST_CASE(an_unsupported_dtype_is_named) {
  damaged_model m;
  auto& tensor = m.tensors["model.norm.weight"];
  tensor.dtype = "I16";
  m.write();
  m.expect_refused(errc::mismatch, {m.folder.path().string(), "model.norm.weight", "I16", "BF16"});
}

BOOST_AUTO_TEST_CASE(an_untied_model_needs_its_head) {
  damaged_model m;
  m.shape.tied = false;
  m.write();
  m.expect_refused(errc::mismatch, {"lm_head.weight", "[83, 40]"});
}

BOOST_AUTO_TEST_CASE(a_truncated_file_never_loads) {
  damaged_model m;
  m.write();
  const fs::path file = m.folder.path() / "model.safetensors";
  const auto whole = fs::file_size(file);
  for (const auto bytes : {std::uintmax_t{0}, std::uintmax_t{7}, std::uintmax_t{8},
                           std::uintmax_t{100}, whole / 2, whole - 2, whole - 1}) {
    m.write();
    fs::resize_file(file, bytes);
    m.expect_refused(errc::malformed, {file.string()});
  }
}

BOOST_AUTO_TEST_CASE(a_folder_without_weights_or_config_is_said_to_be_so) {
  damaged_model m;
  m.expect_refused(errc::not_found, {"config.json"});
  write_text(m.folder.path() / "config.json", config_text(m.shape));
  m.expect_refused(errc::not_found, {m.folder.path().string(), "model.safetensors"});
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
  damaged_model m;
  m.write();
  auto options = m.options();
  options.threads = 0;
  BOOST_TEST((make_cpu_backend(options).error().code == errc::invalid_argument));
  options = m.options();
  options.vocab_legal_tokens = m.shape.vocab + 1;
  BOOST_TEST((make_cpu_backend(options).error().code == errc::invalid_argument));
  options = m.options();
  options.heads.resize(limits::heads_max + 1);
  BOOST_TEST((make_cpu_backend(options).error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(unknown_kernels_are_refused_with_those_that_run) {
  damaged_model m;
  m.write();
  const environment chosen("TOKENROUTER_CPU_ISA", "avx1024");
  const auto loaded = make_cpu_backend(m.options());
  BOOST_TEST_REQUIRE(!loaded.has_value());
  BOOST_TEST((loaded.error().code == errc::invalid_argument));
  BOOST_TEST(loaded.error().message.find("avx1024") != std::string::npos);
  BOOST_TEST(loaded.error().message.find("scalar") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(facts_name_the_kernels_that_were_chosen) {
  damaged_model m;
  m.write();
  for (const auto* table : cpu::runnable_kernels()) {
    const environment chosen("TOKENROUTER_CPU_ISA", table->name);
    BOOST_TEST(make_cpu_backend(m.options()).value()->facts().kernels == table->name);
  }
}

BOOST_AUTO_TEST_CASE(the_estimate_is_what_loading_takes) {
  for (const auto compute : {compute_type::bfloat16, compute_type::float32})
    for (const std::string size : {"xs", "s", "m"}) {
      load_options options;
      options.model_path = "examples/models/abacus/abacus-" + size;
      options.compute = compute;
      const auto estimate = estimate_cpu_memory(options);
      const auto model = make_cpu_backend(options);
      BOOST_TEST_REQUIRE((estimate.has_value() && model.has_value()));
      BOOST_TEST(estimate->weight_bytes == (*model)->facts().weight_bytes);
      BOOST_TEST(estimate->kv_bytes_per_block == (*model)->facts().kv_bytes_per_block);
    }
  load_options options;
  options.model_path = "examples/models/abacus/abacus-m";
  const auto m = estimate_cpu_memory(options).value();
  // 16 positions, 8 layers, 4 key-value heads of 32, keys and values, 2 bytes each.
  BOOST_TEST(m.kv_bytes_per_block == 16u * 8 * 4 * 32 * 2 * 2);
  BOOST_TEST(m.weight_bytes >= 6558464u * 2);
  BOOST_TEST(m.weight_bytes < 6558464u * 2 * 102 / 100);
}

BOOST_AUTO_TEST_CASE(facts_come_from_the_config_and_generation_config) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-m";
  const auto model = make_cpu_backend(options);
  BOOST_TEST_REQUIRE(model.has_value());
  const auto& facts = (*model)->facts();
  BOOST_TEST(facts.architecture == "Qwen3ForCausalLM");
  BOOST_TEST(facts.vocab_tokens == 1024u);
  BOOST_TEST(facts.context_tokens_max == 2048u);
  BOOST_TEST((facts.eos_tokens == std::vector<token_id>{1021, 1019}));
}

BOOST_AUTO_TEST_CASE(a_kv_pool_beyond_memory_is_an_error) {
  load_options options;
  options.model_path = "examples/models/abacus/abacus-m";
  auto model = make_cpu_backend(options).value();
  const auto kv = model->allocate_kv(0xffffffffu);
  BOOST_TEST_REQUIRE(!kv.has_value());
  BOOST_TEST((kv.error().code == errc::capacity));
}

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "runtime/exec/safetensors.hpp"
#include "tests/exec/cpu/test_models.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

/// Two small tensors of known values.
tensor_map two_tensors() {
  tensor_map tensors;
  tensors["a"] = {"F32", {2}, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}};        // 1, -2
  tensors["b"] = {"BF16", {1, 3}, {0x80, 0x3f, 0x00, 0x40, 0x40, 0xc0}}; // 1, 2, -3
  return tensors;
}

void write_raw(const fs::path& file, const std::string& header, std::size_t data_bytes) {
  std::ofstream out(file, std::ios::binary);
  for (int i = 0; i < 8; ++i)
    out.put(static_cast<char>(header.size() >> (8 * i)));
  out << header << std::string(data_bytes, '\0');
}

void expect_malformed(const fs::path& path, const std::string& word) {
  const auto opened = weight_files::open(path);
  BOOST_TEST_REQUIRE(!opened.has_value(), "must not open: " << word);
  BOOST_TEST((opened.error().code == errc::malformed), opened.error().message);
  BOOST_TEST(opened.error().message.find(path.string()) != std::string::npos,
             opened.error().message);
  BOOST_TEST(opened.error().message.find(word) != std::string::npos,
             "'" << word << "' in: " << opened.error().message);
}

} // namespace

BOOST_AUTO_TEST_CASE(tensors_of_a_file_are_found_by_name) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "model.safetensors";
  write_safetensors(file, two_tensors());
  for (const fs::path& path : {file, folder.path()}) {
    const auto files = weight_files::open(path);
    BOOST_TEST_REQUIRE(files.has_value());
    BOOST_TEST((files->names() == std::vector<std::string>{"a", "b"}));
    BOOST_TEST((to_float(*files->find("a")) == std::vector<float>{1, -2}));
    BOOST_TEST((to_float(*files->find("b")) == std::vector<float>{1, 2, -3}));
    BOOST_TEST((files->find("b")->shape == std::vector<std::int64_t>{1, 3}));
    BOOST_TEST(files->find("c") == nullptr);
    const std::int64_t wanted[] = {3, 1};
    const auto wrong = files->require("b", wanted);
    BOOST_TEST_REQUIRE(!wrong.has_value());
    for (const auto& word : std::vector<std::string>{file.string(), "'b'", "[1, 3]", "[3, 1]"})
      BOOST_TEST(wrong.error().message.find(word) != std::string::npos, wrong.error().message);
    BOOST_TEST((files->require("c", wanted).error().code == errc::mismatch));
  }
}

BOOST_AUTO_TEST_CASE(half_precision_is_widened_exactly) {
  tensor_view tensor{"F16", {8}, {}};
  const std::uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0x7c00, 0x8000};
  tensor.bytes = std::as_bytes(std::span(halves));
  const std::vector<float> wanted = {1.0f,
                                     -2.0f,
                                     65504.0f,
                                     0x1p-14f,
                                     0x1p-24f,
                                     -1023 * 0x1p-24f,
                                     std::numeric_limits<float>::infinity(),
                                     -0.0f};
  const auto found = to_float(tensor);
  BOOST_TEST(std::memcmp(found.data(), wanted.data(), sizeof(float) * 8) == 0);
}

BOOST_AUTO_TEST_CASE(a_file_cut_at_any_byte_is_refused_by_name) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "w.safetensors";
  write_safetensors(file, two_tensors());
  const auto whole = fs::file_size(file);
  for (std::uintmax_t bytes = 0; bytes < whole; ++bytes) {
    write_safetensors(file, two_tensors());
    fs::resize_file(file, bytes);
    expect_malformed(file, file.string());
  }
  write_safetensors(file, two_tensors());
  fs::resize_file(file, whole + 1);
  expect_malformed(file, "file at");
}

BOOST_AUTO_TEST_CASE(headers_that_lie_are_refused) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "w.safetensors";
  const struct {
    const char* header;
    const char* word;
  } table[] = {
      {"not json", "JSON"},
      {"[]", "JSON object"},
      {R"({"a":5})", "'a'"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "data_offsets"},
      {R"({"a":{"dtype":"X7","shape":[2],"data_offsets":[0,8]}})", "X7"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "takes 12"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "shape"},
      {R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", "shape"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "shape"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "outside"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", "outside"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "hole"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "end at byte 4"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
           "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "overlap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
           "a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "hole"},
  };
  for (const auto& row : table) {
    write_raw(file, row.header, 8);
    expect_malformed(file, row.word);
  }
}

BOOST_AUTO_TEST_CASE(a_header_length_beyond_the_file_is_refused) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "w.safetensors";
  std::ofstream(file, std::ios::binary) << std::string(8, '\xff') << "{}";
  expect_malformed(file, "claims 18446744073709551615 bytes");
}

BOOST_AUTO_TEST_CASE(random_damage_never_crashes_and_what_opens_stays_inside_the_file) {
  const scratch_folder folder;
  const fs::path file = folder.path() / "w.safetensors";
  write_safetensors(file, two_tensors());
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::uint32_t state = 1;
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  std::size_t refused = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::string bytes = whole;
    for (std::uint32_t hits = 1 + (next() >> 16) % 3; hits > 0; --hits)
      bytes[(next() >> 8) % bytes.size()] = static_cast<char>(next() >> 24);
    std::ofstream(file, std::ios::binary) << bytes;
    const auto files = weight_files::open(file);
    refused += !files.has_value();
    if (!files)
      continue;
    for (const auto& name : files->names()) {
      const auto* view = files->find(name);
      unsigned sum = 0;
      for (const std::byte b : view->bytes)
        sum += std::to_integer<unsigned>(b);
      BOOST_TEST(view->bytes.size() <= whole.size());
      BOOST_TEST(sum <= 255u * whole.size());
    }
  }
  BOOST_TEST(refused > 1000u);
}

BOOST_AUTO_TEST_CASE(shards_are_read_together_and_a_missing_one_is_named) {
  const scratch_folder folder;
  const auto tensors = two_tensors();
  write_safetensors(folder.path() / "part-1.safetensors", {{"a", tensors.at("a")}});
  write_safetensors(folder.path() / "part-2.safetensors", {{"b", tensors.at("b")}});
  const fs::path index = folder.path() / "model.safetensors.index.json";
  const auto write_index = [&](const json& map) {
    write_text(index, json{{"metadata", json::object()}, {"weight_map", map}}.dump());
  };
  write_index({{"a", "part-1.safetensors"}, {"b", "part-2.safetensors"}});
  const auto files = weight_files::open(folder.path());
  BOOST_TEST_REQUIRE(files.has_value());
  BOOST_TEST((to_float(*files->find("a")) == std::vector<float>{1, -2}));
  BOOST_TEST((to_float(*files->find("b")) == std::vector<float>{1, 2, -3}));

  write_index({{"a", "part-1.safetensors"}, {"b", "part-3.safetensors"}});
  const auto missing = weight_files::open(folder.path());
  BOOST_TEST_REQUIRE(!missing.has_value());
  BOOST_TEST((missing.error().code == errc::not_found));
  BOOST_TEST(missing.error().message.find("part-3.safetensors") != std::string::npos);

  write_index({{"a", "part-1.safetensors"}, {"b", "part-1.safetensors"}});
  const auto moved = weight_files::open(folder.path());
  BOOST_TEST_REQUIRE(!moved.has_value());
  BOOST_TEST(moved.error().message.find("'b' is not in part-1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_index_that_lies_is_refused) {
  const scratch_folder folder;
  const auto tensors = two_tensors();
  const fs::path index = folder.path() / "model.safetensors.index.json";
  write_safetensors(folder.path() / "p.safetensors", tensors);
  write_safetensors(folder.path() / "q.safetensors", tensors);
  for (const char* text : {"[]", "{}", R"({"weight_map":{}})", R"({"weight_map":{"a":5}})",
                           R"({"weight_map":{"a":"../p.safetensors"}})",
                           R"({"weight_map":{"zzz":"p.safetensors"}})"}) {
    write_text(index, text);
    const auto opened = weight_files::open(folder.path());
    BOOST_TEST_REQUIRE(!opened.has_value(), text);
    BOOST_TEST((opened.error().code == errc::malformed), text);
    BOOST_TEST(opened.error().message.find(index.string()) != std::string::npos, text);
  }
  write_text(index, R"({"weight_map":{"a":"p.safetensors","b":"q.safetensors"}})");
  BOOST_TEST(weight_files::open(folder.path()).error().message.find("is also in") !=
             std::string::npos);
}

// Runs a fuzz target without a fuzzer: on every file of a corpus, and on so many mutants of each.
// The same inputs every time.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/fuzz_target.hpp"

namespace {

using bytes = std::vector<std::uint8_t>;

/// Bytes changed, stretches cut, doubled, or taken from another input.
bytes mutant(const bytes& from, const bytes& other, std::mt19937& draw) {
  bytes out = from;
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : draw() % n; };
  for (std::size_t changes = 1 + below(6); changes > 0; --changes) {
    const std::size_t at = below(out.size() + 1);
    const std::size_t count = std::min(below(24), out.size() - at);
    const auto here = out.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = here + static_cast<std::ptrdiff_t>(count);
    switch (below(5)) {
    case 0:
      if (at < out.size())
        out[at] = static_cast<std::uint8_t>(draw());
      break;
    case 1:
      out.erase(here, end);
      break;
    case 2: {
      const bytes copy(here, end);
      out.insert(here, copy.begin(), copy.end());
      break;
    }
    case 3: {
      const std::size_t from_other = below(other.size());
      const std::size_t taken = std::min<std::size_t>(below(24), other.size() - from_other);
      const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from_other);
      out.insert(here, begin, begin + static_cast<std::ptrdiff_t>(taken));
      break;
    }
    default: {
      constexpr char marks[] = "{}[]\",:\\0123456789-eE.\r\n \t\xff\xc3";
      out.insert(here, static_cast<std::uint8_t>(marks[below(sizeof marks - 1)]));
      break;
    }
    }
  }
  return out;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CORPUS MUTANTS_OF_EACH\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<bytes> inputs;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (inputs.empty())
    return 1;
  std::mt19937 draw(20261129);
  std::size_t runs = 0;
  for (const auto& input : inputs) {
    LLVMFuzzerTestOneInput(input.data(), input.size());
    for (int i = 0; i < std::atoi(argv[2]); ++i) {
      const bytes other = mutant(input, inputs[draw() % inputs.size()], draw);
      LLVMFuzzerTestOneInput(other.data(), other.size());
    }
    runs += 1 + static_cast<std::size_t>(std::atoi(argv[2]));
  }
  std::printf("%zu inputs\n", runs);
  return 0;
}

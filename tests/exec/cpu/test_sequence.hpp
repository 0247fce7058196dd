#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exec/backend.hpp"

namespace tokenrouter::test {

/// A request as the tests drive it: its tokens so far and its blocks.
struct sequence {
  std::vector<token_id> tokens;
  std::vector<block_id> blocks;
  std::uint32_t computed = 0; ///< leading tokens whose KV is written
};

/// What a row gave, with a look inside.
struct row_record {
  step_row_output out;
  std::vector<float> hidden;
  std::vector<float> logits;
};

/// Loads a model and allocates its KV; fails the test on an error.
std::unique_ptr<backend> load(const load_options& options, std::uint32_t blocks);

/// Adds a row that runs the next `count` tokens of a sequence.
void add_row(step_input& in, sequence& s, std::uint32_t count, bool answered_positions);

/// Runs a step; records by row, only of rows that want a token.
std::map<std::size_t, row_record> run(backend& model, const step_input& in);

/// Runs all tokens of `s` that have no KV yet, alone, in pieces of at most `chunk_tokens`.
row_record finish_prompt(backend& model, sequence& s, std::uint32_t chunk_tokens = 100000);

/// Sets an environment variable for as long as it lives.
class environment {
 public:
  environment(std::string name, const std::string& value);
  ~environment();

 private:
  std::string name_;
};

/// Blocks first, first + step, … enough for `tokens` positions.
std::vector<block_id> blocks_for(std::uint32_t tokens, block_id first, block_id step = 1);

bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

} // namespace tokenrouter::test

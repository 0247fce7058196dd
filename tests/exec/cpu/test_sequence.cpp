#include "tests/exec/cpu/test_sequence.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <boost/test/unit_test.hpp>

#include "runtime/core/limits.hpp"
#include "runtime/exec/cpu/cpu_backend.hpp"
#include "runtime/exec/cpu/debug.hpp"

namespace tokenrouter::test {

std::unique_ptr<backend> load(const load_options& options, std::uint32_t blocks) {
  auto model = make_cpu_backend(options);
  BOOST_REQUIRE_MESSAGE(model.has_value(), (model ? std::string() : model.error().message));
  BOOST_REQUIRE((*model)->allocate_kv(blocks).has_value());
  return std::move(*model);
}

void add_row(step_input& in, sequence& s, std::uint32_t count, bool answered_positions) {
  step_row row;
  row.token_offset = static_cast<std::uint32_t>(in.tokens.size());
  row.token_count = count;
  row.start_position = s.computed;
  row.block_offset = static_cast<std::uint32_t>(in.block_tables.size());
  row.block_count = static_cast<std::uint32_t>(s.blocks.size());
  row.answered_positions = answered_positions;
  row.signals = answered_positions ? signal::entropy | signal::top_entropy | signal::evidence : 0u;
  in.tokens.insert(in.tokens.end(), s.tokens.begin() + s.computed,
                   s.tokens.begin() + s.computed + count);
  in.block_tables.insert(in.block_tables.end(), s.blocks.begin(), s.blocks.end());
  in.rows.push_back(row);
  s.computed += count;
}

std::map<std::size_t, row_record> run(backend& model, const step_input& in) {
  std::map<std::size_t, row_record> records;
  cpu::tap_rows(model, [&](std::size_t row, auto hidden, auto logits) {
    records[row].hidden.assign(hidden.begin(), hidden.end());
    records[row].logits.assign(logits.begin(), logits.end());
  });
  step_output out;
  model.step(in, out);
  cpu::tap_rows(model, {});
  BOOST_REQUIRE_EQUAL(out.rows.size(), in.rows.size());
  for (std::size_t i = 0; i < in.rows.size(); ++i) {
    BOOST_REQUIRE_EQUAL(records.count(i), in.rows[i].answered_positions ? 1u : 0u);
    if (in.rows[i].answered_positions)
      records[i].out = out.rows[i];
    else
      BOOST_TEST(out.rows[i].token == -1);
  }
  return records;
}

row_record finish_prompt(backend& model, sequence& s, std::uint32_t chunk_tokens) {
  for (;;) {
    const auto left = static_cast<std::uint32_t>(s.tokens.size()) - s.computed;
    step_input in;
    add_row(in, s, std::min(left, chunk_tokens), left <= chunk_tokens);
    auto records = run(model, in);
    if (left <= chunk_tokens)
      return records.at(0);
  }
}

environment::environment(std::string name, const std::string& value) : name_(std::move(name)) {
  ::setenv(name_.c_str(), value.c_str(), 1);
}

environment::~environment() {
  ::unsetenv(name_.c_str());
}

std::vector<block_id> blocks_for(std::uint32_t tokens, block_id first, block_id step) {
  std::vector<block_id> blocks;
  for (std::uint32_t i = 0; i < tokens; i += limits::block_tokens)
    blocks.push_back(first + step * static_cast<block_id>(blocks.size()));
  return blocks;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace tokenrouter::test

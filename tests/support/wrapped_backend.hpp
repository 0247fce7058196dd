#pragma once

#include <memory>

#include "runtime/exec/backend.hpp"

namespace tokenrouter::test {

/// Passes everything on; what a test wants different it overrides.
class wrapped_backend : public backend {
 public:
  explicit wrapped_backend(std::unique_ptr<backend> inner) : inner_(std::move(inner)) {}

  const model_facts& facts() const override { return inner_->facts(); }
  result<void> allocate_kv(std::uint32_t blocks) override { return inner_->allocate_kv(blocks); }
  void step(const step_input& in, step_output& out) override { inner_->step(in, out); }
  void copy_blocks(std::span<const block_copy> copies) override { inner_->copy_blocks(copies); }
  void export_blocks(std::span<const block_id> blocks, std::span<std::byte> bytes) override {
    inner_->export_blocks(blocks, bytes);
  }
  void import_blocks(std::span<const block_id> blocks, std::span<const std::byte> bytes) override {
    inner_->import_blocks(blocks, bytes);
  }
  std::vector<std::byte> kv_address() const override { return inner_->kv_address(); }
  result<std::unique_ptr<kv_source>> reach_kv(std::span<const std::byte> address) override {
    return inner_->reach_kv(address);
  }

 protected:
  backend& inner() { return *inner_; }

 private:
  std::unique_ptr<backend> inner_;
};

} // namespace tokenrouter::test

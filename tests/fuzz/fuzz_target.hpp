#pragma once

#include <cstddef>
#include <cstdint>

/// One input of a fuzzer: libFuzzer's entry, also called by replay_main.cpp.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

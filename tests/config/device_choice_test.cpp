#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>

#include "runtime/config/device_choice.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_device_is_cpu_cuda_or_cuda_with_a_number) {
  struct row {
    const char* text;
    std::optional<device_choice> wanted;
  };
  const row rows[] = {
      {"cpu", device_choice{false, std::nullopt}},
      {"cuda", device_choice{true, std::nullopt}},
      {"cuda:0", device_choice{true, 0}},
      {"cuda:12", device_choice{true, 12}},
      {"cuda:4294967295", device_choice{true, 4294967295}},
      {"cuda:4294967296", std::nullopt}, // one more than fits
      {"cuda:", std::nullopt},
      {"cuda:-1", std::nullopt},
      {"cuda:+1", std::nullopt},
      {"cuda: 1", std::nullopt},
      {"cuda:1x", std::nullopt},
      {"cuda:x1", std::nullopt},
      {"cuda1", std::nullopt},
      {"CUDA", std::nullopt},
      {"cpu:0", std::nullopt},
      {"gpu", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& [text, wanted] : rows)
    BOOST_TEST((parse_device(text) == wanted), '\'' << text << '\'');
}

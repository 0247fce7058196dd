#include <boost/test/unit_test.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exec/kv_region.hpp"

using namespace tokenrouter;

namespace {

constexpr std::size_t block_bytes = 8;

kv_region make_pool(char fill, std::uint32_t blocks = 4, std::size_t bytes = block_bytes) {
  const auto memory =
      std::make_shared<std::vector<std::byte>>(blocks * bytes, static_cast<std::byte>(fill));
  return {memory, memory->data(), bytes, blocks};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_pool_of_this_process_is_read_by_its_address_and_outlives_its_owner) {
  auto from = make_pool('a');
  const auto to = make_pool('b');
  const auto address = publish_kv(from);
  const auto source = reach_region(address, to);
  BOOST_REQUIRE(source.has_value());
  from = {};
  const block_copy copies[] = {{3, 0}, {1, 2}};
  BOOST_TEST((*source)->read(copies).has_value());
  const std::string wanted = "aaaaaaaabbbbbbbbaaaaaaaabbbbbbbb";
  BOOST_TEST(std::memcmp(to.data, wanted.data(), wanted.size()) == 0);
}

BOOST_AUTO_TEST_CASE(a_block_that_the_sibling_does_not_have_is_its_fault_and_no_crash) {
  const auto from = make_pool('a');
  const auto source = reach_region(publish_kv(from), make_pool('b'));
  BOOST_REQUIRE(source.has_value());
  const block_copy copies[] = {{4, 0}};
  const auto done = (*source)->read(copies);
  BOOST_REQUIRE(!done.has_value());
  BOOST_TEST((done.error().code == errc::malformed));
  BOOST_TEST(done.error().message == "the sibling named KV block 4 of 4");
}

BOOST_AUTO_TEST_CASE(what_is_gone_foreign_or_of_another_size_is_not_reached) {
  auto from = make_pool('a');
  auto address = publish_kv(from);
  const auto other_size = reach_region(address, make_pool('b', 4, 16));
  BOOST_REQUIRE(!other_size.has_value());
  BOOST_TEST((other_size.error().code == errc::mismatch));
  for (std::size_t byte = 0; byte < address.size(); ++byte) {
    auto foreign = address;
    foreign[byte] ^= std::byte{1};
    const auto reached = reach_region(foreign, make_pool('b'));
    BOOST_TEST((!reached.has_value() && reached.error().code == errc::unavailable), byte);
  }
  BOOST_TEST(!reach_region(std::span(address).first(8), make_pool('b')).has_value());
  from = {};
  BOOST_TEST(!reach_region(address, make_pool('b')).has_value());
}

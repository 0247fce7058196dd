#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include "runtime/ingress/http_server.hpp"
#include "tests/ingress/ingress_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

void limit_files(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  BOOST_REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

rlimit files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

auto start(std::uint32_t connections_max) {
  static scripted_engine job;
  static service endpoints(job, {tools_for_tests(), {}, 1000});
  http_settings settings;
  settings.connections_max = connections_max;
  return http_server::start(settings, endpoints);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_server_takes_the_open_files_that_its_connections_need) {
  limit_files(100, files().rlim_max);
  BOOST_TEST(start(300).has_value());
  BOOST_TEST(files().rlim_cur >= 300u);
}

// The last here: a limit that was lowered for good stays low.
BOOST_AUTO_TEST_CASE(connections_that_can_never_be_open_are_refused) {
  limit_files(200, 200);
  const auto refused = start(300);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().message.find("serve.connections_max is 300, but this process may "
                                           "open 200 files") != std::string::npos),
             refused.error().message);
  BOOST_TEST(start(20).has_value());
}

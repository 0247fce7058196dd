#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/policy/finish.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(a_request_ends_at_eos_length_or_context) {
  const std::vector<token_id> eos{7, 9};
  struct row {
    token_id token;
    std::uint32_t committed;
    finish_limits limits;
    finish_reason reason;
  };
  for (const auto& r : {row{1, 11, {10, 5, 100, false}, finish_reason::none},
                        row{7, 11, {10, 5, 100, false}, finish_reason::stop},
                        row{9, 15, {10, 5, 100, false}, finish_reason::stop},
                        row{1, 14, {10, 5, 100, false}, finish_reason::none},
                        row{1, 15, {10, 5, 100, false}, finish_reason::length},
                        row{1, 11, {10, 1, 100, false}, finish_reason::length},
                        row{1, 20, {10, 50, 20, false}, finish_reason::length},
                        row{7, 11, {10, 5, 100, true}, finish_reason::none}})
    BOOST_TEST((check_finish(r.token, r.committed, r.limits, eos) == r.reason));
}

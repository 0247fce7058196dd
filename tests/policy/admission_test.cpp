#include <boost/test/unit_test.hpp>

#include <vector>

#include "runtime/policy/admission.hpp"

using namespace tokenrouter;

BOOST_AUTO_TEST_CASE(what_could_never_finish_is_refused_by_name) {
  struct row {
    admission_request request;
    std::string refused_for; ///< empty: admitted
  };
  const std::vector<admission_model> models{{"small", 64, 64}, {"large", 48, 40}};
  const std::vector<row> rows{
      {{10, 10, 99, 100}, ""},
      {{20, 20, 99, 100}, ""},
      {{0, 10, 0, 100}, "empty"},
      {{10, 0, 5, 100}, "max_new_tokens is 0"},
      {{10, 10, 100, 100}, "token id 100 is outside the vocabulary of 100"},
      {{48, 1, 5, 100}, "context of model 'large' is 48"},
      {{20, 21, 5, 100}, "pool of model 'large' holds 40"},
      {{20, 4000000000u, 5, 100}, "KV for 48 tokens"},
  };
  for (const auto& [request, refused_for] : rows) {
    const auto verdict = admit(request, models);
    BOOST_TEST(verdict.has_value() == refused_for.empty());
    if (!verdict)
      BOOST_TEST(verdict.error().message.find(refused_for) != std::string::npos,
                 verdict.error().message);
  }
}

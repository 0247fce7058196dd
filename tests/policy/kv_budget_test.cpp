#include <boost/test/unit_test.hpp>

#include "runtime/policy/kv_budget.hpp"

using namespace tokenrouter;

namespace {

kv_budget_input base() {
  kv_budget_input in;
  in.memory_bytes = 1000000;
  in.models_on_device = 2;
  in.weight_bytes = 100000;
  in.kv_bytes_per_block = 1000;
  in.max_batch_rows = 4;
  in.context_tokens_max = 160;
  return in;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_pool_is_no_larger_than_full_batches_can_use) {
  const auto out = plan_kv_budget(base());
  BOOST_TEST(out.blocks == 40u);
  BOOST_TEST(out.fits);
  BOOST_TEST(out.share_bytes == 500000u);
}

BOOST_AUTO_TEST_CASE(a_pool_takes_its_fraction_of_what_the_weights_leave) {
  auto in = base();
  in.max_batch_rows = 1000;
  BOOST_TEST(plan_kv_budget(in).blocks == 200u);
  in.kv_cache_mem_fraction = 0.25;
  BOOST_TEST(plan_kv_budget(in).blocks == 100u);
}

BOOST_AUTO_TEST_CASE(a_model_that_does_not_fit_is_told) {
  auto in = base();
  in.weight_bytes = 495000;
  BOOST_TEST(!plan_kv_budget(in).fits);
  in.weight_bytes = 600000;
  BOOST_TEST(!plan_kv_budget(in).fits);
  BOOST_TEST(plan_kv_budget(in).needed_bytes == 610000u);
}

BOOST_AUTO_TEST_CASE(tokens_asked_for_are_taken_as_they_are) {
  auto in = base();
  in.kv_cache_tokens = 17;
  BOOST_TEST(plan_kv_budget(in).blocks == 2u);
  BOOST_TEST(plan_kv_budget(in).fits);
  in.kv_cache_tokens = 16 * 401;
  BOOST_TEST(plan_kv_budget(in).blocks == 401u);
  BOOST_TEST(!plan_kv_budget(in).fits);
}

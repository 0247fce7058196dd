#include <boost/test/unit_test.hpp>

#include <stdexcept>

#include "runtime/methods/options.hpp"
#include "runtime/methods/plain/plain.hpp"
#include "runtime/methods/plugin.hpp"

using namespace tokenrouter;

namespace {

role_result make_refusing(model_id, const method_topology& topology, const method_parameters&) {
  only_model_with(topology, "nobody").value();
  return nullptr;
}

role_result make_throwing(model_id, const method_topology&, const method_parameters&) {
  throw std::runtime_error("out of luck");
}

role_result make_throwing_number(model_id, const method_topology&, const method_parameters&) {
  throw 7;
}

entry_result make_second(const method_topology&, const method_parameters&) {
  return std::make_unique<fixed_entry>(model_id{1});
}

method_parameters with_options(std::map<std::string, std::string> options) {
  method_parameters parameters;
  parameters.options = std::move(options);
  return parameters;
}

} // namespace

// This program is the library.
TOKENROUTER_METHOD({"mine", make_plain}, {"refusing", make_refusing}, {"throwing", make_throwing},
                   {"throwing_number", make_throwing_number});
TOKENROUTER_METHOD_ENTRY(make_second);

BOOST_AUTO_TEST_CASE(entry_points_make_roles_by_name) {
  struct row {
    std::string role;
    errc code;
    std::string message;
  };
  const row rows[] = {
      {"nine", errc::invalid_argument,
       "unknown scheduler 'nine'; the library has: mine, refusing, throwing, throwing_number"},
      {"refusing", errc::invalid_argument,
       "the method needs exactly one model with scheduler: nobody; the config has 0"},
      {"throwing", errc::internal, "the factory of scheduler 'throwing' threw: out of luck"},
      {"throwing_number", errc::internal,
       "the factory of scheduler 'throwing_number' threw something that is no std::exception"},
  };
  for (const auto& [role, code, message] : rows) {
    role_result made;
    tokenrouter_make_role({1}, {{"mine", role}, {0}}, {}, made);
    BOOST_REQUIRE(!made);
    BOOST_TEST((made.error().code == code), role);
    BOOST_TEST(made.error().message == message);
  }
  role_result made;
  tokenrouter_make_role({0}, {{"mine"}, {0}}, {}, made);
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST(*made != nullptr);
}

BOOST_AUTO_TEST_CASE(an_entry_of_the_librarys_own_starts_requests) {
  entry_result made;
  tokenrouter_make_entry({{"mine", "mine"}, {0}}, {}, made);
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST((*made)->start({}).model.value == 1u);
}

BOOST_AUTO_TEST_CASE(the_abi_number_starts_with_the_version) {
  BOOST_TEST(tokenrouter_method_abi() == method_abi());
  BOOST_TEST(method_abi() >> 48 == method_interface_version);
  BOOST_TEST((method_abi() & 0xffffffffffff) != 0u);
}

BOOST_AUTO_TEST_CASE(number_options_are_read_whole_and_within_their_range) {
  BOOST_TEST(number_option({}, "depth", 0, 3, 1.5).value() == 1.5);
  for (const auto& [text, value] : {std::pair{"0", 0.0}, {"3", 3.0}, {"2.5e-1", 0.25}})
    BOOST_TEST(number_option(with_options({{"depth", text}}), "depth", 0, 3, 1).value() == value);
  for (const char* text : {"", "3.01", "-1", "nan", "inf", "1x", " 1", "deep"}) {
    const auto read = number_option(with_options({{"depth", text}}), "depth", 0, 3, 1);
    BOOST_REQUIRE_MESSAGE(!read, text);
    BOOST_TEST(read.error().message ==
               std::string("method.options.depth must be a number, 0 to 3, not ") + text);
  }
}

BOOST_AUTO_TEST_CASE(options_that_nobody_reads_are_refused) {
  BOOST_TEST(check_options({}, {}).has_value());
  BOOST_TEST(check_options(with_options({{"depth", "1"}}), {"width", "depth"}).has_value());
  BOOST_TEST(check_options(with_options({{"dept", "1"}}), {"width", "depth"}).error().message ==
             "method.options.dept is unknown; the method reads width, depth");
  BOOST_TEST(check_options(with_options({{"dept", "1"}}), {}).error().message ==
             "method.options.dept is unknown; the method reads none");
}

#define BOOST_TEST_MODULE tokenrouter
#include <boost/test/unit_test.hpp>

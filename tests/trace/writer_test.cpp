#include <boost/test/unit_test.hpp>

#include <fstream>

#include "tests/trace/trace_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

void write_trace(const std::filesystem::path& path, std::uint64_t rows, std::uint64_t batch_rows,
                 const trace_origin& origin = origin_of(0)) {
  auto writer = hdf5_writer::create(path, origin);
  BOOST_REQUIRE_MESSAGE(writer.has_value(), (writer ? "" : writer.error().message));
  for (std::uint64_t n = 0; n < rows; n += batch_rows)
    (*writer)->append(rows_between(n, std::min(rows, n + batch_rows)));
  BOOST_TEST((*writer)->healthy());
}

} // namespace

BOOST_AUTO_TEST_CASE(every_row_of_every_kind_comes_back_as_it_was) {
  struct row {
    std::uint64_t rows;
    std::uint64_t batch_rows;
  };
  // None, one, around a batch of 256 and a chunk of 4096, and well beyond both.
  for (const auto& r : {row{0, 1}, row{1, 1}, row{255, 255}, row{256, 256}, row{257, 1},
                        row{4096, 100}, row{4097, 4097}, row{10'000, 333}}) {
    BOOST_TEST_CONTEXT(r.rows << " rows in batches of " << r.batch_rows) {
      const scratch_folder folder;
      const auto path = folder.path() / "trace.h5";
      write_trace(path, r.rows, r.batch_rows);
      const auto file = read_trace(path);
      BOOST_REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message));
      BOOST_TEST(file->events.tokens.size() == r.rows);
      BOOST_TEST(file->events.handoffs.size() == r.rows);
      BOOST_TEST(file->events.steps.size() == r.rows);
      BOOST_TEST(file->events.requests.size() == r.rows);
      BOOST_TEST(right_rows(file->events) == r.rows);
    }
  }
}

BOOST_AUTO_TEST_CASE(kinds_grow_independently) {
  const scratch_folder folder;
  const auto path = folder.path() / "trace.h5";
  {
    auto writer = hdf5_writer::create(path, origin_of(0)).value();
    auto batch = rows_between(0, 900);
    batch.handoffs.clear();
    batch.steps.resize(3);
    batch.requests.resize(300);
    writer->append(batch);
  }
  const auto events = read_trace(path).value().events;
  BOOST_TEST(right_rows(events.tokens, nth_token) == 900u);
  BOOST_TEST(events.handoffs.empty());
  BOOST_TEST(right_rows(events.steps, nth_step) == 3u);
  BOOST_TEST(right_rows(events.requests, nth_request) == 300u);
}

BOOST_AUTO_TEST_CASE(a_file_says_whose_it_is) {
  const scratch_folder folder;
  const auto path = folder.path() / "trace.h5";
  write_trace(path, 1, 1, {{4095}, "node-7.example", {"quick", "mod\xc3\xa8le", "c"}});
  const auto file = read_trace(path).value();
  BOOST_TEST(file.origin.rank.value == 4095u);
  BOOST_TEST(file.origin.host == "node-7.example");
  BOOST_TEST(file.origin.model_names == (std::vector<std::string>{"quick", "mod\xc3\xa8le", "c"}));
  BOOST_TEST(file.wall_time_us > 1'600'000'000'000'000u);
  BOOST_TEST(file.monotonic_us > 0u);
}

BOOST_AUTO_TEST_CASE(a_new_trace_replaces_an_old_one) {
  const scratch_folder folder;
  const auto path = folder.path() / "trace.h5";
  write_trace(path, 5000, 500);
  write_trace(path, 3, 1);
  BOOST_TEST(right_rows(read_trace(path).value().events) == 3u);
  BOOST_TEST(read_trace(path).value().events.tokens.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_place_that_cannot_be_written_is_an_error_that_names_the_file) {
  const scratch_folder folder;
  std::ofstream(folder.path() / "a file") << "no folder";
  std::filesystem::create_directory(folder.path() / "a folder");
  for (const auto& path : {folder.path() / "no such folder" / "trace.h5",
                           folder.path() / "a file" / "trace.h5", folder.path() / "a folder"}) {
    const auto writer = hdf5_writer::create(path, origin_of(0));
    BOOST_REQUIRE(!writer.has_value());
    BOOST_TEST((writer.error().code == errc::io));
    BOOST_TEST(writer.error().message.find(path.string()) != std::string::npos);
  }
}

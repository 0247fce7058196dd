#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include "tests/trace/child_writer.hpp"
#include "tests/trace/trace_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

BOOST_AUTO_TEST_CASE(a_trace_can_be_read_while_another_process_writes_it) {
  const scratch_folder folder;
  const auto path = folder.path() / "trace.h5";
  child_writer child([&](child_writer& parent) {
    auto writer = hdf5_writer::create(path, origin_of(0)).value();
    writer->flush();
    parent.tell(0);
    std::uint64_t written = 0;
    while (const auto more = parent.hear()) {
      writer->append(rows_between(written, written + *more));
      writer->flush();
      written += *more;
      parent.tell(written);
    }
    return 0;
  });
  BOOST_REQUIRE(child.hear().has_value());
  std::uint64_t flushed = 0;
  for (const std::uint64_t more : {0u, 1u, 100u, 5000u, 3u}) {
    child.tell(more);
    flushed += more;
    BOOST_REQUIRE(child.hear().value_or(0) == flushed);
    const auto file = read_trace(path);
    BOOST_REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message));
    BOOST_TEST(file->events.tokens.size() == flushed);
    BOOST_TEST(right_rows(file->events) == flushed);
  }
}

BOOST_AUTO_TEST_CASE(a_killed_writer_leaves_every_row_it_had_flushed) {
  for (const std::uint64_t kill_after_rows : {0u, 50u, 1000u, 5000u, 12'000u, 30'000u}) {
    const scratch_folder folder;
    const auto path = folder.path() / "trace.h5";
    child_writer child([&](child_writer& parent) {
      auto writer = hdf5_writer::create(path, origin_of(0)).value();
      writer->flush();
      parent.tell(0);
      std::uint64_t written = 0;
      for (std::uint64_t batch = 0;; ++batch) {
        const std::uint64_t more = 1 + batch * 37 % 100;
        writer->append(rows_between(written, written + more));
        written += more;
        if (batch % 16 != 15)
          continue;
        writer->flush();
        parent.tell(written);
      }
      return 0;
    });
    // The writer goes on while it is told to die: the kill comes at no moment of its own choosing.
    std::optional<std::uint64_t> flushed = child.hear();
    while (flushed && *flushed < kill_after_rows)
      flushed = child.hear();
    BOOST_REQUIRE(flushed.has_value());
    child.kill_now();
    while (const auto later = child.hear())
      flushed = later;

    const auto file = read_trace(path);
    BOOST_REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().message));
    BOOST_TEST(right_rows(file->events) >= *flushed);
    BOOST_TEST_MESSAGE("killed: " << *flushed << " rows flushed, " << file->events.tokens.size()
                                  << " in the file, " << right_rows(file->events)
                                  << " of them right");
  }
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_stops_the_trace_and_not_the_program) {
  const scratch_folder folder;
  const auto path = folder.path() / "trace.h5";
  child_writer child([&](child_writer&) {
    ::signal(SIGXFSZ, SIG_IGN);
    auto writer = hdf5_writer::create(path, origin_of(0)).value();
    const rlimit small{200'000, 200'000};
    ::setrlimit(RLIMIT_FSIZE, &small);
    for (std::uint64_t n = 0; n < 50'000; n += 500) {
      writer->append(rows_between(n, n + 500));
      writer->flush();
    }
    const bool healthy = writer->healthy();
    writer.reset();
    return healthy ? 1 : 0;
  });
  BOOST_TEST(child.wait() == 0);
}

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <fstream>
#include <functional>

#include <hdf5.h>

#include "runtime/trace/h5_id.hpp"
#include "tests/trace/trace_fixture.hpp"

using namespace tokenrouter;
using namespace tokenrouter::test;

namespace {

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string sound_trace(const scratch_folder& folder) {
  const auto path = folder.path() / "sound.h5";
  hdf5_writer::create(path, origin_of(0)).value()->append(rows_between(0, 1000));
  return read_bytes(path);
}

/// The sound trace, changed with HDF5's own means.
void write_changed(const scratch_folder& folder, const std::filesystem::path& path,
                   const std::function<void(hid_t)>& change) {
  write_bytes(path, sound_trace(folder));
  const h5_id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  BOOST_REQUIRE(static_cast<bool>(file));
  change(file.get());
}

void replace_format(hid_t file, const std::string& text) {
  H5Adelete(file, "format");
  const h5_id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), text.size());
  const h5_id space(H5Screate(H5S_SCALAR), H5Sclose);
  const h5_id attribute(
      H5Acreate2(file, "format", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  H5Awrite(attribute.get(), type.get(), text.data());
}

/// A dataset of plain numbers where events are expected.
void replace_dataset(hid_t file, const char* name, const std::vector<hsize_t>& extent) {
  H5Ldelete(file, name, H5P_DEFAULT);
  const h5_id space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                    H5Sclose);
  const h5_id set(
      H5Dcreate2(file, name, H5T_NATIVE_INT, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose);
  BOOST_REQUIRE(static_cast<bool>(set));
}

void test_refused(const std::filesystem::path& path, errc code) {
  const auto file = read_trace(path);
  BOOST_REQUIRE(!file.has_value());
  BOOST_TEST((file.error().code == code));
  BOOST_TEST(file.error().message.find(path.string()) != std::string::npos);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_file_that_is_not_there_is_said_to_be_missing) {
  const scratch_folder folder;
  test_refused(folder.path() / "nothing.h5", errc::not_found);
}

BOOST_AUTO_TEST_CASE(what_is_no_hdf5_file_is_refused_by_name) {
  const scratch_folder folder;
  const auto path = folder.path() / "strange.h5";
  for (const std::string& bytes :
       {std::string(), std::string("time,token\n1,2\n"), std::string(100'000, '\0')}) {
    write_bytes(path, bytes);
    test_refused(path, errc::malformed);
  }
  test_refused(folder.path(), errc::malformed);
}

BOOST_AUTO_TEST_CASE(a_truncated_file_is_refused_by_name_wherever_it_is_cut) {
  const scratch_folder folder;
  const auto whole = sound_trace(folder);
  const auto path = folder.path() / "cut.h5";
  BOOST_REQUIRE(whole.size() > 100'000u);
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 4) {
    write_bytes(path, whole.substr(0, bytes));
    test_refused(path, errc::malformed);
  }
  write_bytes(path, whole.substr(0, whole.size() - 1));
  test_refused(path, errc::malformed);
  write_bytes(path, whole);
  BOOST_TEST(read_trace(path).has_value());
}

BOOST_AUTO_TEST_CASE(damaged_metadata_is_refused_instead_of_read_again_for_ever) {
  const scratch_folder folder;
  const auto whole = sound_trace(folder);
  const auto path = folder.path() / "damaged.h5";
  // The superblock, the root's header and its attributes: all under a checksum.
  for (std::size_t at = 20; at < 400; at += 40) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    write_bytes(path, bytes);
    test_refused(path, errc::malformed);
  }
}

BOOST_AUTO_TEST_CASE(an_extent_beyond_what_the_file_holds_is_refused) {
  const scratch_folder folder;
  const auto path = folder.path() / "long.h5";
  write_changed(folder, path, [](hid_t file) {
    const h5_id set(H5Dopen2(file, "tokens", H5P_DEFAULT), H5Dclose);
    const hsize_t rows = hsize_t{1} << 31;
    BOOST_REQUIRE(H5Dset_extent(set.get(), &rows) >= 0);
  });
  test_refused(path, errc::malformed);
}

BOOST_AUTO_TEST_CASE(an_hdf5_file_of_another_kind_is_refused_by_name) {
  struct row {
    const char* what;
    std::function<void(hid_t)> change;
  };
  const std::vector<row> rows{
      {"another format", [](hid_t f) { replace_format(f, "tokenrouter-trace-2"); }},
      {"a longer format", [](hid_t f) { replace_format(f, "tokenrouter-trace-12"); }},
      {"no format", [](hid_t f) { H5Adelete(f, "format"); }},
      {"no rank", [](hid_t f) { H5Adelete(f, "rank"); }},
      {"no models", [](hid_t f) { H5Adelete(f, "models"); }},
      {"no clock", [](hid_t f) { H5Adelete(f, "monotonic_us"); }},
      {"no handoffs", [](hid_t f) { H5Ldelete(f, "handoffs", H5P_DEFAULT); }},
      {"numbers for tokens", [](hid_t f) { replace_dataset(f, "tokens", {5}); }},
      {"a table for requests",
       [](hid_t f) {
         replace_dataset(f, "requests", {2, 3});
       }},
      {"a single value for steps", [](hid_t f) { replace_dataset(f, "steps", {}); }},
  };
  for (const auto& r : rows) {
    BOOST_TEST_CONTEXT(r.what) {
      const scratch_folder folder;
      const auto path = folder.path() / "other.h5";
      write_changed(folder, path, r.change);
      test_refused(path, errc::malformed);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_was_opened_and_left_alone_is_still_a_trace) {
  const scratch_folder folder;
  const auto path = folder.path() / "same.h5";
  write_changed(folder, path, [](hid_t) {});
  BOOST_TEST(right_rows(read_trace(path).value().events) == 1000u);
}

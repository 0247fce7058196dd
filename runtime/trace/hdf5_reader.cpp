#include "runtime/trace/hdf5_reader.hpp"

#include <sstream>

#include "runtime/trace/event_types.hpp"

namespace tokenrouter {

namespace {

constexpr hsize_t rows_max = hsize_t{1} << 32; ///< beyond this a file is taken for damaged

bool get_number(hid_t file, const char* name, std::uint64_t& value) {
  const h5_id attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
  return attribute && H5Aread(attribute.get(), H5T_NATIVE_UINT64, &value) >= 0;
}

bool get_text(hid_t file, const char* name, std::string& value) {
  const h5_id attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
  if (!attribute)
    return false;
  const h5_id type(H5Aget_type(attribute.get()), H5Tclose);
  const std::size_t bytes = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || bytes == 0 || bytes > (1u << 20))
    return false;
  std::string text(bytes, '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0)
    return false;
  value = text.c_str();
  return true;
}

template <class Row>
bool get_rows(hid_t file, std::vector<Row>& rows) {
  const h5_id set(H5Dopen2(file, event_type<Row>::dataset, H5P_DEFAULT), H5Dclose);
  if (!set)
    return false;
  const h5_id space(H5Dget_space(set.get()), H5Sclose);
  hsize_t count = 0;
  if (H5Sget_simple_extent_ndims(space.get()) != 1 ||
      H5Sget_simple_extent_dims(space.get(), &count, nullptr) != 1 || count > rows_max)
    return false;
  // Rows that no block of the file holds would be made up: the extent of a damaged file.
  if (H5Dget_storage_size(set.get()) / sizeof(Row) < count)
    return false;
  rows.resize(count);
  const h5_id type = event_type<Row>::make();
  return count == 0 ||
         H5Dread(set.get(), type.get(), H5S_ALL, space.get(), H5P_DEFAULT, rows.data()) >= 0;
}

bool get_origin(hid_t file, trace_file& out) {
  std::string format, names;
  std::uint64_t rank = 0;
  if (!get_text(file, "format", format) || format != "tokenrouter-trace-1" ||
      !get_number(file, "rank", rank) || !get_text(file, "host", out.origin.host) ||
      !get_text(file, "models", names) || !get_number(file, "wall_time_us", out.wall_time_us) ||
      !get_number(file, "monotonic_us", out.monotonic_us))
    return false;
  out.origin.rank = {static_cast<std::uint32_t>(rank)};
  std::istringstream lines(names);
  for (std::string name; std::getline(lines, name);)
    out.origin.model_names.push_back(name);
  return true;
}

} // namespace

result<trace_file> read_trace(const std::filesystem::path& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  if (!std::filesystem::exists(path))
    return fail(errc::not_found, "there is no trace file " + path.string());
  // A file whose writer lives or was killed opens in this mode only; one that was closed in both.
  const h5_id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_metadata_read_attempts(access.get(), 20);
  const h5_id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.get()),
                   H5Fclose);
  if (!file)
    return fail(errc::malformed, path.string() + " can't be opened as an HDF5 file");
  trace_file out;
  auto& events = out.events;
  if (!get_origin(file.get(), out) || !get_rows(file.get(), events.tokens) ||
      !get_rows(file.get(), events.handoffs) || !get_rows(file.get(), events.steps) ||
      !get_rows(file.get(), events.requests))
    return fail(errc::malformed, path.string() + " is not a trace of this program, or is damaged");
  return out;
}

} // namespace tokenrouter

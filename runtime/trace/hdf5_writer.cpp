#include "runtime/trace/hdf5_writer.hpp"

#include <chrono>

#include "runtime/core/clock.hpp"
#include "runtime/core/log.hpp"
#include "runtime/trace/event_types.hpp"

namespace tokenrouter {

namespace {

constexpr hsize_t chunk_rows = 4096;
constexpr std::size_t batch_rows = 256;

/// One dataset that only grows.
template <class Row>
class growing_dataset {
 public:
  bool create(hid_t file) {
    type_ = event_type<Row>::make();
    const hsize_t start = 0, limit = H5S_UNLIMITED, chunk = chunk_rows;
    const h5_id space(H5Screate_simple(1, &start, &limit), H5Sclose);
    const h5_id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (!space || !properties || H5Pset_chunk(properties.get(), 1, &chunk) < 0)
      return false;
    set_ = h5_id(H5Dcreate2(file, event_type<Row>::dataset, type_.get(), space.get(), H5P_DEFAULT,
                            properties.get(), H5P_DEFAULT),
                 H5Dclose);
    return static_cast<bool>(set_);
  }

  bool append(const std::vector<Row>& rows) {
    gathered_.insert(gathered_.end(), rows.begin(), rows.end());
    return gathered_.size() < batch_rows || write();
  }

  bool flush() { return write() && H5Dflush(set_.get()) >= 0; }

 private:
  bool write() {
    if (gathered_.empty())
      return true;
    const hsize_t count = gathered_.size(), end = written_ + count;
    if (H5Dset_extent(set_.get(), &end) < 0)
      return false;
    const h5_id all(H5Dget_space(set_.get()), H5Sclose);
    const h5_id memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const bool fine =
        H5Sselect_hyperslab(all.get(), H5S_SELECT_SET, &written_, nullptr, &count, nullptr) >= 0 &&
        H5Dwrite(set_.get(), type_.get(), memory.get(), all.get(), H5P_DEFAULT, gathered_.data()) >=
            0;
    written_ = end;
    gathered_.clear();
    return fine;
  }

  h5_id type_;
  h5_id set_;
  hsize_t written_ = 0;
  std::vector<Row> gathered_;
};

bool put_number(hid_t file, const char* name, std::uint64_t value) {
  const h5_id space(H5Screate(H5S_SCALAR), H5Sclose);
  const h5_id attribute(
      H5Acreate2(file, name, H5T_NATIVE_UINT64, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute.get(), H5T_NATIVE_UINT64, &value) >= 0;
}

/// A list of names as one text, a line each: readable by every HDF5 tool.
bool put_text(hid_t file, const char* name, const std::string& value) {
  const h5_id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const h5_id space(H5Screate(H5S_SCALAR), H5Sclose);
  const h5_id attribute(H5Acreate2(file, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                        H5Aclose);
  return attribute && H5Awrite(attribute.get(), type.get(), value.c_str()) >= 0;
}

std::uint64_t wall_time_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

bool put_origin(hid_t file, const trace_origin& origin) {
  std::string names;
  for (const auto& name : origin.model_names)
    names += name + "\n";
  return put_text(file, "format", "tokenrouter-trace-1") &&
         put_number(file, "rank", origin.rank.value) && put_text(file, "host", origin.host) &&
         put_text(file, "models", names) && put_number(file, "wall_time_us", wall_time_us()) &&
         put_number(file, "monotonic_us", monotonic_us());
}

} // namespace

struct hdf5_writer::parts {
  h5_id file;
  growing_dataset<token_event> tokens;
  growing_dataset<handoff_event> handoffs;
  growing_dataset<step_event> steps;
  growing_dataset<request_event> requests;
  bool healthy = true;

  void note(bool fine) {
    if (healthy && !fine)
      spdlog::error("a trace could not be written; the rest of it is lost (is the disk full?)");
    healthy = healthy && fine;
  }
};

hdf5_writer::hdf5_writer(std::unique_ptr<parts> p) : parts_(std::move(p)) {}

hdf5_writer::~hdf5_writer() {
  flush();
}

result<std::unique_ptr<hdf5_writer>> hdf5_writer::create(const std::filesystem::path& path,
                                                         const trace_origin& origin) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  auto p = std::make_unique<parts>();
  const h5_id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // SWMR needs the newest file format, and every dataset and attribute before it starts.
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  p->file = h5_id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose);
  if (!p->file)
    return fail(errc::io, "can't create the trace file " + path.string());
  const hid_t file = p->file.get();
  if (!put_origin(file, origin) || !p->tokens.create(file) || !p->handoffs.create(file) ||
      !p->steps.create(file) || !p->requests.create(file) || H5Fstart_swmr_write(file) < 0)
    return fail(errc::io, "can't set up the trace file " + path.string());
  return std::unique_ptr<hdf5_writer>(new hdf5_writer(std::move(p)));
}

void hdf5_writer::append(const trace_batch& batch) {
  auto& p = *parts_;
  if (!p.healthy)
    return;
  p.note(p.tokens.append(batch.tokens) && p.handoffs.append(batch.handoffs) &&
         p.steps.append(batch.steps) && p.requests.append(batch.requests));
}

void hdf5_writer::flush() {
  auto& p = *parts_;
  if (p.healthy)
    p.note(p.tokens.flush() && p.handoffs.flush() && p.steps.flush() && p.requests.flush());
}

bool hdf5_writer::healthy() const {
  return parts_->healthy;
}

} // namespace tokenrouter

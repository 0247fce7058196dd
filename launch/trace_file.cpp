#include "launch/trace_file.hpp"

#include <system_error>

#include "runtime/core/log.hpp"
#include "runtime/trace/hdf5_writer.hpp"

namespace tokenrouter {

namespace {

class hdf5_sink final : public trace_sink {
 public:
  explicit hdf5_sink(std::unique_ptr<hdf5_writer> writer) : writer_(std::move(writer)) {}
  void append(const trace_batch& batch) override { writer_->append(batch); }
  void flush() override { writer_->flush(); }

 private:
  std::unique_ptr<hdf5_writer> writer_;
};

} // namespace

tracer::sink_factory make_trace_opener(std::filesystem::path directory, trace_origin origin) {
  return [directory = std::move(directory),
          origin = std::move(origin)]() -> std::unique_ptr<trace_sink> {
    std::error_code ignored; // creating the file tells
    std::filesystem::create_directories(directory, ignored);
    const auto file = directory / ("trace-rank-" + std::to_string(origin.rank.value) + ".h5");
    auto writer = hdf5_writer::create(file, origin);
    if (!writer) {
      spdlog::error("this rank runs without a trace: {}", writer.error().message);
      return nullptr;
    }
    return std::make_unique<hdf5_sink>(std::move(*writer));
  };
}

} // namespace tokenrouter

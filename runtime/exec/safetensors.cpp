#include "runtime/exec/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/core/check.hpp"

namespace tokenrouter {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr std::uint64_t header_bytes_max = std::uint64_t{100} << 20;
constexpr std::uint64_t length_field_bytes = 8;

std::optional<std::uint64_t> dtype_bytes(std::string_view dtype) {
  static const std::map<std::string_view, std::uint64_t> widths = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
      {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8},
  };
  const auto it = widths.find(dtype);
  return it == widths.end() ? std::nullopt : std::optional(it->second);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

auto malformed(const fs::path& file, const std::string& what) {
  return fail(errc::malformed, file.string() + ": " + what + "; fetch the file again");
}

/// A whole file, mapped read-only.
class file_map {
 public:
  static result<file_map> open(const fs::path& file) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      const int code = errno;
      return fail(code == ENOENT ? errc::not_found : errc::io,
                  file.string() + ": cannot open: " + std::strerror(code));
    }
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(fd);
      return fail(errc::io, file.string() + ": not a regular file");
    }
    const auto bytes = static_cast<std::size_t>(status.st_size);
    if (bytes < length_field_bytes) {
      ::close(fd);
      return malformed(file, "only " + std::to_string(bytes) + " bytes, too short for a header");
    }
    void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (at == MAP_FAILED)
      return fail(errc::io, file.string() + ": cannot map: " + std::strerror(errno));
    return file_map(static_cast<const std::byte*>(at), bytes);
  }

  file_map(file_map&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  file_map& operator=(file_map&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~file_map() {
    if (at_)
      ::munmap(const_cast<std::byte*>(at_), bytes_);
  }

  std::span<const std::byte> bytes() const { return {at_, bytes_}; }

 private:
  file_map(const std::byte* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  const std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
};

struct named_tensor {
  std::string name;
  tensor_view view;
  std::uint64_t begin = 0;
};

result<named_tensor> read_entry(const fs::path& file, const std::string& name, const json& entry,
                                std::span<const std::byte> data) {
  const auto bad = [&](const std::string& what) {
    return malformed(file, "tensor '" + name + "': " + what);
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2)
    return bad("needs dtype, shape and two data_offsets");
  named_tensor tensor;
  tensor.name = name;
  tensor.view.dtype = entry["dtype"].get<std::string>();
  const auto width = dtype_bytes(tensor.view.dtype);
  if (!width)
    return bad("unknown dtype '" + tensor.view.dtype + "'");
  std::uint64_t wanted = *width;
  for (const auto& dim : entry["shape"]) {
    if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() > (std::uint64_t{1} << 48) ||
        __builtin_mul_overflow(wanted, dim.get<std::uint64_t>(), &wanted))
      return bad("its shape is not a list of sensible dimensions");
    tensor.view.shape.push_back(dim.get<std::int64_t>());
  }
  const auto& offsets = entry["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    return bad("its data_offsets are not offsets");
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size())
    return bad("its data [" + std::to_string(begin) + ", " + std::to_string(end) +
               ") lie outside the " + std::to_string(data.size()) + " bytes the file has");
  if (end - begin != wanted)
    return bad("has " + std::to_string(end - begin) + " bytes, but " + tensor.view.dtype + " " +
               shape_text(tensor.view.shape) + " takes " + std::to_string(wanted));
  tensor.view.bytes = data.subspan(begin, end - begin);
  tensor.begin = begin;
  return tensor;
}

result<std::vector<named_tensor>> read_header(const fs::path& file,
                                              std::span<const std::byte> bytes) {
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < length_field_bytes; ++i)
    header_bytes |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[i])} << (8 * i);
  const std::uint64_t room = bytes.size() - length_field_bytes;
  if (header_bytes > room || header_bytes > header_bytes_max)
    return malformed(file, "its header claims " + std::to_string(header_bytes) + " bytes, " +
                               std::to_string(room) + " follow");
  const auto* text = reinterpret_cast<const char*>(bytes.data() + length_field_bytes);
  const json header = json::parse(text, text + header_bytes, nullptr, false);
  if (!header.is_object())
    return malformed(file, "its header is not a JSON object");
  const auto data = bytes.subspan(length_field_bytes + header_bytes);

  std::vector<named_tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    auto tensor = read_entry(file, name, entry, data);
    if (!tensor)
      return tl::unexpected(tensor.error());
    tensors.push_back(std::move(*tensor));
  }
  std::sort(tensors.begin(), tensors.end(), [](const named_tensor& a, const named_tensor& b) {
    return std::pair(a.begin, a.view.bytes.size()) < std::pair(b.begin, b.view.bytes.size());
  });
  std::uint64_t next = 0;
  for (const auto& tensor : tensors) {
    if (tensor.begin != next)
      return malformed(file, "tensor '" + tensor.name + "' starts at byte " +
                                 std::to_string(tensor.begin) + " of the data, where " +
                                 std::to_string(next) + " was due (an overlap or a hole)");
    next += tensor.view.bytes.size();
  }
  if (next != data.size())
    return malformed(file, "its tensors end at byte " + std::to_string(next) +
                               " of the data, the file at " + std::to_string(data.size()));
  return tensors;
}

/// File of each tensor, as the index of a sharded model says.
result<std::map<std::string, std::string>> read_index(const fs::path& file) {
  auto map = file_map::open(file);
  if (!map)
    return tl::unexpected(map.error());
  const auto* text = reinterpret_cast<const char*>(map->bytes().data());
  const json index = json::parse(text, text + map->bytes().size(), nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    return malformed(file, "not a JSON object with a weight_map");
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : index["weight_map"].items()) {
    if (!shard.is_string() || shard.get<std::string>().empty() ||
        fs::path(shard.get<std::string>()).filename() != shard.get<std::string>())
      return malformed(file, "tensor '" + name + "' is not mapped to the name of a file");
    shards.emplace(name, shard.get<std::string>());
  }
  if (shards.empty())
    return malformed(file, "its weight_map is empty");
  return shards;
}

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t rebased = exponent == 0x1f ? 0xffu : exponent + 112;
  return std::bit_cast<float>(sign | (rebased << 23) | (mantissa << 13));
}

} // namespace

std::int64_t tensor_view::elements() const {
  std::int64_t count = 1;
  for (const auto dim : shape)
    count *= dim;
  return count;
}

struct weight_files::maps {
  fs::path source; ///< what the user named
  std::vector<file_map> files;
  std::map<std::string, tensor_view, std::less<>> tensors;
  std::map<std::string, fs::path, std::less<>> file_of; ///< by tensor

  result<void> add(const fs::path& file) {
    auto map = file_map::open(file);
    if (!map)
      return tl::unexpected(map.error());
    auto header = read_header(file, map->bytes());
    if (!header)
      return tl::unexpected(header.error());
    for (auto& tensor : *header) {
      if (!file_of.emplace(tensor.name, file).second)
        return malformed(file, "tensor '" + tensor.name + "' is also in " +
                                   file_of.at(tensor.name).string());
      tensors.emplace(tensor.name, std::move(tensor.view));
    }
    files.push_back(std::move(*map));
    return {};
  }
};

weight_files::weight_files(std::unique_ptr<maps> m) : maps_(std::move(m)) {}
weight_files::weight_files(weight_files&&) noexcept = default;
weight_files& weight_files::operator=(weight_files&&) noexcept = default;
weight_files::~weight_files() = default;

result<weight_files> weight_files::open(const fs::path& path) {
  auto loaded = std::make_unique<maps>();
  loaded->source = path;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    if (auto added = loaded->add(path); !added)
      return tl::unexpected(added.error());
    return weight_files(std::move(loaded));
  }
  const fs::path single = path / "model.safetensors";
  if (fs::exists(single, ignored)) {
    if (auto added = loaded->add(single); !added)
      return tl::unexpected(added.error());
    return weight_files(std::move(loaded));
  }
  const fs::path index_file = path / "model.safetensors.index.json";
  if (!fs::exists(index_file, ignored))
    return fail(errc::not_found, path.string() +
                                     ": has neither model.safetensors nor "
                                     "model.safetensors.index.json; point it at a model folder");
  const auto index = read_index(index_file);
  if (!index)
    return tl::unexpected(index.error());
  std::set<std::string> shards;
  for (const auto& [name, shard] : *index)
    shards.insert(shard);
  for (const auto& shard : shards) {
    if (auto added = loaded->add(path / shard); !added)
      return fail(added.error().code,
                  added.error().message + " (a shard of " + index_file.string() + ")");
  }
  for (const auto& [name, shard] : *index) {
    const auto it = loaded->file_of.find(name);
    if (it == loaded->file_of.end() || it->second != path / shard)
      return malformed(index_file, "tensor '" + name + "' is not in " + shard);
  }
  return weight_files(std::move(loaded));
}

const fs::path& weight_files::path() const {
  return maps_->source;
}

const tensor_view* weight_files::find(std::string_view name) const {
  const auto it = maps_->tensors.find(name);
  return it == maps_->tensors.end() ? nullptr : &it->second;
}

result<const tensor_view*> weight_files::require(std::string_view name,
                                                 std::span<const std::int64_t> shape) const {
  const auto* view = find(name);
  if (!view)
    return fail(errc::mismatch, maps_->source.string() + ": tensor '" + std::string(name) +
                                    "' is missing, wanted with shape " + shape_text(shape));
  if (!std::equal(view->shape.begin(), view->shape.end(), shape.begin(), shape.end()))
    return fail(errc::mismatch, maps_->file_of.find(name)->second.string() + ": tensor '" +
                                    std::string(name) + "' has shape " + shape_text(view->shape) +
                                    ", wanted " + shape_text(shape));
  return view;
}

std::vector<std::string> weight_files::names() const {
  std::vector<std::string> names;
  for (const auto& [name, view] : maps_->tensors)
    names.push_back(name);
  return names;
}

void to_float(const tensor_view& tensor, std::span<float> out) {
  const auto count = static_cast<std::size_t>(tensor.elements());
  check(out.size() == count, "to_float: one float for each element");
  if (tensor.dtype == "F32") {
    if (count)
      std::memcpy(out.data(), tensor.bytes.data(), count * sizeof(float));
    return;
  }
  const bool bf16 = tensor.dtype == "BF16";
  check(bf16 || tensor.dtype == "F16", "to_float: BF16, F16 or F32");
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t raw = 0;
    std::memcpy(&raw, tensor.bytes.data() + i * sizeof(raw), sizeof(raw));
    out[i] = bf16 ? std::bit_cast<float>(std::uint32_t{raw} << 16) : half_to_float(raw);
  }
}

std::vector<float> to_float(const tensor_view& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  to_float(tensor, values);
  return values;
}

} // namespace tokenrouter

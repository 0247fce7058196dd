#pragma once

#include <utility>

#include <hdf5.h>

namespace tokenrouter {

/// Owns one HDF5 identifier and closes it.
class h5_id {
 public:
  using close_function = herr_t (*)(hid_t);

  h5_id() = default;
  h5_id(hid_t id, close_function close) : id_(id), close_(close) {}
  h5_id(h5_id&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  h5_id& operator=(h5_id&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
      close_ = other.close_;
    }
    return *this;
  }
  ~h5_id() { reset(); }

  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  void reset() {
    if (id_ >= 0 && close_ != nullptr)
      close_(id_);
    id_ = H5I_INVALID_HID;
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
  close_function close_ = nullptr;
};

} // namespace tokenrouter

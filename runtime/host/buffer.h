// SPDX-License-Identifier: Apache-2.0
// A block of the heap of exactly the size asked for: a sanitizer sees the first byte past its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/core/arena.h"
#include "runtime/core/span.h"

namespace armdeploy::host {

class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { std::free(bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Takes `size` bytes at a multiple of 64, not cleared; what was there before is gone.
  void resize(size_t size) {
    std::free(bytes_);
    bytes_ = nullptr;
    size_ = size;
    if (posix_memalign(&bytes_, 64, size > 0 ? size : 1) != 0) std::abort();
  }

  uint8_t* bytes() const { return static_cast<uint8_t*>(bytes_); }
  size_t size() const { return size_; }
  Span<const uint8_t> span() const { return {bytes(), size_}; }

 private:
  void* bytes_ = nullptr;
  size_t size_ = 0;
};

// An arena of its own buffer, every byte `fill`.
inline Arena arena_of(size_t size, const char* name, int fill, Buffer* buffer) {
  buffer->resize(size);
  std::memset(buffer->bytes(), fill, size);
  return Arena(buffer->bytes(), size, name);
}

}  // namespace armdeploy::host

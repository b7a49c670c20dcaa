// SPDX-License-Identifier: Apache-2.0
// A region of memory handed out from its start; released only back to a mark.
#pragma once

#include <cstddef>
#include <cstdint>

namespace armdeploy {

class Arena {
 public:
  struct Mark {
    size_t used;
  };

  constexpr Arena() = default;
  // `name` appears in messages ("method", "temp") and is not copied.
  constexpr Arena(void* base, size_t size, const char* name)
      : base_(static_cast<uint8_t*>(base)), size_(size), name_(name) {}

  // Null when it does not fit; then one line says requested / available / missing. `align`: a power of two.
  // The memory is not cleared. Zero bytes give a pointer that must not be read.
  void* allocate(size_t bytes, size_t align = 16);

  // The same for `count` objects of T, which must not need a constructor.
  template <class T>
  T* allocate_array(size_t count) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes)) bytes = SIZE_MAX;
    return static_cast<T*>(allocate(bytes, alignof(T)));
  }

  Mark mark() const { return {used_}; }
  void release(Mark mark) { used_ = mark.used; }

  uint8_t* base() const { return base_; }
  size_t size() const { return size_; }
  size_t used() const { return used_; }
  size_t peak() const { return peak_; }
  const char* name() const { return name_; }

 private:
  uint8_t* base_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
  size_t peak_ = 0;
  const char* name_ = "";
};

}  // namespace armdeploy

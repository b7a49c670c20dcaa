// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/arena.h"

#include "runtime/core/error.h"

namespace armdeploy {

void* Arena::allocate(size_t bytes, size_t align) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(base_) + used_;
  const size_t padding = static_cast<size_t>(0 - at) & (align - 1);
  const size_t available = size_ - used_;
  if (padding > available || bytes > available - padding) {
    const size_t free = padding > available ? 0 : available - padding;
    report(Level::Error, "%s memory: requested %zu, available %zu, missing %zu bytes (size %zu)", name_,
           bytes, free, bytes - free, size_);
    return nullptr;
  }
  uint8_t* memory = base_ + used_ + padding;
  used_ += padding + bytes;
  if (used_ > peak_) peak_ = used_;
  return memory;
}

}  // namespace armdeploy

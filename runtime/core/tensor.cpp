// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/tensor.h"

namespace armdeploy {

size_t element_size(ScalarType type) {
  // By number; 0: no type of that number, or one without whole bytes.
  static const uint8_t kSizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 0, 0, 0, 1, 1, 1, 4,
                                   2, 0, 0, 0, 0, 0, 0, 2, 1, 1, 1, 1, 2, 4, 8};
  const auto index = static_cast<uint8_t>(type);
  return index < sizeof kSizes ? kSizes[index] : 0;
}

size_t Tensor::numel() const {
  size_t count = 1;
  for (size_t i = 0; i < rank; ++i) count *= static_cast<size_t>(sizes[i]);
  return count;
}

bool Tensor::contiguous() const {
  for (size_t i = 0; i < rank; ++i) {
    if (dim_order[i] != i) return false;
  }
  return true;
}

void Tensor::strides(size_t* out) const {
  size_t stride = 1;
  for (size_t i = rank; i > 0; --i) {
    const size_t dimension = dim_order[i - 1];
    out[dimension] = stride;
    stride *= static_cast<size_t>(sizes[dimension]);
  }
}

// Whether `elements` of `bytes` each, given dimension by dimension, fit `capacity`; no overflow on the way.
static bool fits(const int32_t* sizes, size_t rank, size_t bytes, size_t capacity) {
  size_t total = bytes;
  bool empty = false;
  bool overflow = false;
  for (size_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0) return false;
    empty |= sizes[i] == 0;
    overflow |= __builtin_mul_overflow(total, static_cast<size_t>(sizes[i]), &total);
  }
  return empty || (!overflow && total <= capacity);
}

Error Tensor::resize(const int32_t* new_sizes, size_t new_rank) {
  if (new_rank != rank) {
    return fail(Error::NotSupported, "resize: a tensor of rank %u cannot become rank %zu", unsigned{rank},
                new_rank);
  }
  size_t same = 0;
  while (same < rank && sizes[same] == new_sizes[same]) ++same;
  if (same == rank) return Error::Ok;
  const int found = static_cast<int>(sizes[same]);
  const int wanted = static_cast<int>(new_sizes[same]);
  if (!resizable) {
    return fail(Error::NotSupported, "resize: dimension %zu of a static tensor is %d, not %d", same, found,
                wanted);
  }
  if (!fits(new_sizes, rank, element_size(dtype), capacity)) {
    return fail(Error::NotSupported,
                "resize: dimension %zu from %d to %d needs more than the tensor's %zu bytes", same, found,
                wanted, capacity);
  }
  for (size_t i = 0; i < rank; ++i) resizable[i] = new_sizes[i];
  return Error::Ok;
}

}  // namespace armdeploy

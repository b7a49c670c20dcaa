// SPDX-License-Identifier: Apache-2.0
// Strided views of memory and the one loop over several of them that copies, maps and quantisers use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/tensor.h"

namespace armdeploy::kernels {

// Memory as an array of any rank; strides in bytes, 0 repeats, negative goes backwards.
struct View {
  uint8_t* data = nullptr;
  size_t rank = 0;
  size_t size[kMaxRank];
  ptrdiff_t stride[kMaxRank];

  View() = default;
  explicit View(const Tensor& tensor);
  size_t numel() const;
};

constexpr size_t kMaxOperands = 4;

// Does `count` elements: operand k's element i is at data[k] + i * stride[k].
using RowFn = void (*)(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count);

// A loop over all elements of views[0], the result; the other views are broadcast to it. The order follows
// the result's memory, and dimensions that are one piece of memory in all views are merged, so that most
// calls make one row. False: a view cannot be broadcast to the result.
class Loop {
 public:
  bool plan(const View* views, size_t count);
  void run(RowFn row, void* context) const;

 private:
  void append(const View* views, size_t dim);
  void sort();
  void merge();

  size_t operands_ = 0;
  size_t rank_ = 0;
  bool empty_ = false;
  uint8_t* data_[kMaxOperands];
  size_t size_[kMaxRank];
  ptrdiff_t stride_[kMaxRank][kMaxOperands];
};

// Copies all elements of `from` to `to`, broadcasting and converting (see store_row) when the types differ.
// False: `from` cannot be broadcast to `to`.
bool copy(const View& to, ScalarType to_type, const View& from, ScalarType from_type);

}  // namespace armdeploy::kernels

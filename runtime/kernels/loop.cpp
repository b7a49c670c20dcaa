// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/loop.h"

#include <cstring>

namespace armdeploy::kernels {

View::View(const Tensor& tensor) : data(tensor.as<uint8_t>()), rank(tensor.rank) {
  size_t strides[kMaxRank];
  tensor.strides(strides);
  const size_t bytes = element_size(tensor.dtype);
  for (size_t d = 0; d < rank; d++) {
    size[d] = static_cast<size_t>(tensor.sizes[d]);
    stride[d] = static_cast<ptrdiff_t>(strides[d] * bytes);
  }
}

size_t View::numel() const {
  size_t product = 1;
  for (size_t d = 0; d < rank; d++) product *= size[d];
  return product;
}

bool Loop::plan(const View* views, size_t count) {
  const View& out = views[0];
  operands_ = count;
  rank_ = 0;
  empty_ = out.numel() == 0;
  for (size_t k = 0; k < count; k++) {
    data_[k] = views[k].data;
    if (views[k].rank > out.rank) return false;
    for (size_t d = 0; d < views[k].rank; d++) {
      const size_t size = views[k].size[d];
      if (size != 1 && size != out.size[out.rank - views[k].rank + d]) return false;
    }
  }
  for (size_t d = 0; d < out.rank; d++) {
    if (out.size[d] != 1) append(views, d);
  }
  sort();
  merge();
  return true;
}

void Loop::append(const View* views, size_t dim) {
  size_[rank_] = views[0].size[dim];
  for (size_t k = 0; k < operands_; k++) {
    const View& view = views[k];
    const size_t missing = views[0].rank - view.rank;
    const bool repeats = dim < missing || view.size[dim - missing] == 1;
    stride_[rank_][k] = repeats ? 0 : view.stride[dim - missing];
  }
  rank_++;
}

void Loop::sort() {
  for (size_t end = 1; end < rank_; end++) {
    for (size_t d = end; d > 0 && stride_[d - 1][0] < stride_[d][0]; d--) {
      const size_t size = size_[d];
      ptrdiff_t stride[kMaxOperands];
      memcpy(stride, stride_[d], sizeof(stride));
      size_[d] = size_[d - 1];
      memcpy(stride_[d], stride_[d - 1], sizeof(stride));
      size_[d - 1] = size;
      memcpy(stride_[d - 1], stride, sizeof(stride));
    }
  }
}

void Loop::merge() {
  size_t kept = 0;
  for (size_t d = 1; d < rank_; d++) {
    bool one_piece = true;
    for (size_t k = 0; k < operands_; k++) {
      one_piece &= stride_[kept][k] == stride_[d][k] * static_cast<ptrdiff_t>(size_[d]);
    }
    size_[d] *= one_piece ? size_[kept] : 1;
    if (!one_piece) kept++;
    size_[kept] = size_[d];
    memcpy(stride_[kept], stride_[d], sizeof(stride_[d]));
  }
  if (rank_ > 0) rank_ = kept + 1;
}

void Loop::run(RowFn row, void* context) const {
  if (empty_) return;
  if (rank_ == 0) {
    const ptrdiff_t none[kMaxOperands] = {};
    return row(context, data_, none, 1);
  }
  const size_t inner = rank_ - 1;
  size_t index[kMaxRank] = {};
  uint8_t* data[kMaxOperands];
  memcpy(data, data_, sizeof(data));
  for (;;) {
    row(context, data, stride_[inner], size_[inner]);
    size_t d = inner;
    for (;;) {
      if (d-- == 0) return;
      for (size_t k = 0; k < operands_; k++) data[k] += stride_[d][k];
      if (++index[d] < size_[d]) break;
      for (size_t k = 0; k < operands_; k++) data[k] -= stride_[d][k] * static_cast<ptrdiff_t>(size_[d]);
      index[d] = 0;
    }
  }
}

}  // namespace armdeploy::kernels

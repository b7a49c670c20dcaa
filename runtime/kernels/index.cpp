// SPDX-License-Identifier: Apache-2.0
// Elements chosen by index tensors, and the largest elements of a dimension.
#include <cstring>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/shape.h"

namespace armdeploy::kernels {
namespace {

bool is_index(const Tensor& tensor) {
  return tensor.contiguous() && (tensor.dtype == ScalarType::Long || tensor.dtype == ScalarType::Int);
}

int64_t index_at(const Tensor& tensor, size_t position) {
  return load<int64_t>(tensor.dtype, tensor.as<uint8_t>() + position * element_size(tensor.dtype));
}

// out[…, k, …] = self[…, index[k], …]
Error index_select(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  const Tensor& index = *args[2]->t;
  Tensor& out = *args[3]->t;
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], self.rank, &dim));
  if (!is_index(index) || index.rank > 1 || self.rank == 0)
    return context.fail(Error::InvalidArgument, "the index");
  View shape(self);
  shape.size[dim] = index.numel();
  ARMDEPLOY_TRY(resize(context, out, shape.size, shape.rank));
  for (size_t k = 0; k < index.numel(); k++) {
    View from(self);
    View to(out);
    if (index_at(index, k) < 0) return context.fail(Error::InvalidArgument, "a negative index");
    ARMDEPLOY_TRY(select(context, from, dim, index_at(index, k)));
    ARMDEPLOY_TRY(select(context, to, dim, static_cast<int64_t>(k)));
    copy(to, out.dtype, from, self.dtype);
  }
  return Error::Ok;
}

// Row index[…] of `weight` for every index.
Error embedding(KernelContext& context, Span<EValue*> args) {
  const Tensor& weight = *args[0]->t;
  const Tensor& index = *args[1]->t;
  Tensor& out = *args[5]->t;
  if (weight.rank != 2 || !is_index(index) || index.rank == kMaxRank || weight.dtype != out.dtype) {
    return context.fail(Error::InvalidArgument, "needs a matrix, indices, and a result of the matrix's type");
  }
  size_t sizes[kMaxRank];
  for (size_t d = 0; d < index.rank; d++) sizes[d] = static_cast<size_t>(index.sizes[d]);
  sizes[index.rank] = static_cast<size_t>(weight.sizes[1]);
  ARMDEPLOY_TRY(resize(context, out, sizes, index.rank + 1u));
  if (!weight.contiguous() || !out.contiguous())
    return context.fail(Error::NotSupported, "another memory order");
  const size_t row = static_cast<size_t>(weight.sizes[1]) * element_size(weight.dtype);
  for (size_t k = 0; k < index.numel(); k++) {
    const int64_t at = index_at(index, k);
    if (at < 0 || at >= weight.sizes[0]) {
      return context.fail(Error::InvalidArgument, "index %ld of %ld", static_cast<long>(at),
                          static_cast<long>(weight.sizes[0]));
    }
    memcpy(out.as<uint8_t>() + k * row, weight.as<uint8_t>() + static_cast<size_t>(at) * row, row);
  }
  return Error::Ok;
}

// Coordinates of element `flat` of a tensor of these sizes.
void coordinates(const View& view, size_t flat, size_t* out) {
  for (size_t d = view.rank; d-- > 0;) {
    out[d] = flat % view.size[d];
    flat /= view.size[d];
  }
}

uint8_t* element(const View& view, const size_t* at) {
  uint8_t* data = view.data;
  for (size_t d = 0; d < view.rank; d++) data += static_cast<ptrdiff_t>(at[d]) * view.stride[d];
  return data;
}

// For every element of `index`, its coordinates with index[…] in the place of dimension `dim`: visit(here,
// there).
template <class Visit>
Error each_index(KernelContext& context, const Tensor& index, const View& target, size_t dim, Visit visit) {
  const View shape(index);
  if (!is_index(index) || shape.rank != target.rank)
    return context.fail(Error::InvalidArgument, "the index's shape");
  for (size_t d = 0; d < shape.rank; d++) {
    if (d != dim && shape.size[d] > target.size[d])
      return context.fail(Error::InvalidArgument, "the index's shape");
  }
  const size_t count = index.numel();
  const int64_t limit = target.rank == 0 ? 1 : static_cast<int64_t>(target.size[dim]);
  for (size_t k = 0; k < count; k++) {
    size_t here[kMaxRank] = {};
    size_t there[kMaxRank];
    coordinates(shape, k, here);
    memcpy(there, here, sizeof(here));
    const int64_t at = index_at(index, k);
    if (at < 0 || at >= limit) {
      return context.fail(Error::InvalidArgument, "index %ld of %ld", static_cast<long>(at),
                          static_cast<long>(limit));
    }
    there[dim] = static_cast<size_t>(at);
    visit(here, there);
  }
  return Error::Ok;
}

Error gather(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  const Tensor& index = *args[2]->t;
  Tensor& out = *args[4]->t;
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], self.rank, &dim));
  if (self.dtype != out.dtype) return context.fail(Error::InvalidArgument, "a result of another type");
  ARMDEPLOY_TRY(resize_like(context, out, index));
  const View from(self);
  const View to(out);
  const size_t bytes = element_size(self.dtype);
  return each_index(context, index, from, dim, [&](const size_t* here, const size_t* there) {
    memcpy(element(to, here), element(from, there), bytes);
  });
}

// `self` with elements replaced by those of `source`, a tensor or one Scalar.
Error scatter(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  const Tensor& index = *args[2]->t;
  const Tensor* source = args[3]->is_tensor() ? args[3]->t : nullptr;
  Tensor& out = *args[4]->t;
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], self.rank, &dim));
  if (self.dtype != out.dtype || (source && source->dtype != out.dtype)) {
    return context.fail(Error::InvalidArgument, "tensors of several types");
  }
  const size_t bytes = element_size(self.dtype);
  double value = 0;  // room for one element of any type
  if (!source) store_scalar(out.dtype, &value, *args[3]);
  for (size_t d = 0; source && d < source->rank; d++) {
    if (source->rank != index.rank || source->sizes[d] < index.sizes[d]) {
      return context.fail(Error::InvalidArgument, "the source is smaller than the index");
    }
  }
  ARMDEPLOY_TRY(copy_to(context, out, View(self), self.dtype));
  const View to(out);
  const View from(source ? *source : self);
  return each_index(context, index, to, dim, [&](const size_t* here, const size_t* there) {
    memcpy(element(to, there), source ? static_cast<const void*>(element(from, here)) : &value, bytes);
  });
}

// Whether a comes before b among the sought: the larger (smaller), NaN largest, of equal ones the first.
template <class T>
bool before(T a, size_t a_index, T b, size_t b_index, bool largest) {
  if (a == b || (a != a && b != b)) return a_index < b_index;
  const bool greater = a != a || (b == b && a > b);
  return greater == largest;
}

// The k-th of a line is the best of those after the (k-1)-th: no memory is needed.
template <class T>
void top_of_line(const View& line, ScalarType type, bool largest, const View& values, const View& indices) {
  T last = 0;
  size_t last_index = 0;
  for (size_t k = 0; k < values.size[0]; k++) {
    bool found = false;
    T best = 0;
    size_t best_index = 0;
    for (size_t i = 0; i < line.size[0]; i++) {
      const T value = load<T>(type, line.data + static_cast<ptrdiff_t>(i) * line.stride[0]);
      if (k > 0 && !before(last, last_index, value, i, largest)) continue;
      if (found && !before(value, i, best, best_index, largest)) continue;
      found = true;
      best = value;
      best_index = i;
    }
    store<T>(type, values.data + static_cast<ptrdiff_t>(k) * values.stride[0], best);
    store<int64_t>(ScalarType::Long, indices.data + static_cast<ptrdiff_t>(k) * indices.stride[0],
                   static_cast<int64_t>(best_index));
    last = best;
    last_index = best_index;
  }
}

View line_at(const View& view, size_t dim, const size_t* at) {
  View line;
  line.rank = 1;
  line.size[0] = view.size[dim];
  line.stride[0] = view.stride[dim];
  line.data = element(view, at);
  return line;
}

// Sorted even when the caller would not mind.
Error topk(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  Tensor& values = *args[5]->t;
  Tensor& indices = *args[6]->t;
  const int64_t k = args[1]->to_int();
  const bool largest = args[3]->to_int() != 0;
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[2], self.rank, &dim));
  View shape(self);
  if (self.rank == 0 || k < 0 || static_cast<uint64_t>(k) > shape.size[dim]) {
    return context.fail(Error::InvalidArgument, "the %ld largest of a smaller tensor", static_cast<long>(k));
  }
  if (values.dtype != self.dtype || indices.dtype != ScalarType::Long) {
    return context.fail(Error::InvalidArgument, "results of other types");
  }
  shape.size[dim] = static_cast<size_t>(k);
  ARMDEPLOY_TRY(resize(context, values, shape.size, shape.rank));
  ARMDEPLOY_TRY(resize(context, indices, shape.size, shape.rank));
  const View from(self);
  const View to(values);
  const View positions(indices);
  View lines = from;
  lines.size[dim] = 1;
  const size_t count = k == 0 ? 0 : lines.numel();
  for (size_t n = 0; n < count; n++) {
    size_t at[kMaxRank] = {};
    coordinates(lines, n, at);
    const View line = line_at(from, dim, at);
    if (compute_of(self.dtype) == Compute::Integer) {
      top_of_line<int64_t>(line, self.dtype, largest, line_at(to, dim, at), line_at(positions, dim, at));
    } else {
      top_of_line<double>(line, self.dtype, largest, line_at(to, dim, at), line_at(positions, dim, at));
    }
  }
  return Error::Ok;
}

}  // namespace

KERNEL(aten_index_select_out, "TSTT", index_select(context, args))
KERNEL(aten_embedding_out, "TT...T", embedding(context, args))
KERNEL(aten_gather_out, "TST.T", gather(context, args))
KERNEL(aten_scatter_src_out, "TSTTT", scatter(context, args))
KERNEL(aten_scatter_value_out, "TSTST", scatter(context, args))
KERNEL(aten_topk_values, "TSSSSTT", topk(context, args))

}  // namespace armdeploy::kernels

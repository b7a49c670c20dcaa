// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements: each makes a view of its input and copies it to the result.
#include <cstring>

#include "runtime/kernels/shape.h"

namespace armdeploy::kernels {
namespace {

// The result's shape is the input's; its memory order and type are its own.
Error copy_all(KernelContext& context, const Tensor& self, Tensor& out) {
  return copy_to(context, out, View(self), self.dtype);
}

// `source` broadcast to the shape of `self`.
Error copy_from(KernelContext& context, const Tensor& self, const Tensor& source, Tensor& out) {
  ARMDEPLOY_TRY(resize_like(context, out, self));
  if (copy(View(out), out.dtype, View(source), source.dtype)) return Error::Ok;
  return context.fail(Error::InvalidArgument, "the source cannot be broadcast to the target");
}

Error permute(KernelContext& context, const Tensor& self, const EValue& dims, Tensor& out) {
  const View source(self);
  View view = source;
  if (dims.list.size != source.rank)
    return context.fail(Error::InvalidArgument, "not one place for each dimension");
  uint32_t seen = 0;
  for (size_t d = 0; d < source.rank; d++) {
    size_t from = 0;
    ARMDEPLOY_TRY(dim_of(context, *dims.list[d], source.rank, &from));
    seen |= 1u << from;
    view.size[d] = source.size[from];
    view.stride[d] = source.stride[from];
  }
  if (seen != (1u << source.rank) - 1)
    return context.fail(Error::InvalidArgument, "a dimension appears twice");
  return copy_to(context, out, view, self.dtype);
}

Error transpose(KernelContext& context, const Tensor& self, size_t a, size_t b, Tensor& out) {
  const View source(self);
  View view = source;
  if (source.rank > 0) {
    view.size[a] = source.size[b];
    view.stride[a] = source.stride[b];
    view.size[b] = source.size[a];
    view.stride[b] = source.stride[a];
  }
  return copy_to(context, out, view, self.dtype);
}

// A shape that may hold one -1. False: the number of elements is another.
bool resolve_shape(const EValue& shape, size_t numel, size_t* sizes) {
  size_t known = 1;
  size_t open = shape.list.size;
  for (size_t d = 0; d < shape.list.size; d++) {
    const int64_t size = shape.int_at(d);
    if (size == -1 && open == shape.list.size) {
      open = d;
    } else if (size < 0 || size > INT32_MAX ||
               __builtin_mul_overflow(known, static_cast<size_t>(size), &known)) {
      return false;
    } else {
      sizes[d] = static_cast<size_t>(size);
    }
  }
  if (open == shape.list.size) return known == numel;
  if (known == 0 || numel % known != 0) return false;
  sizes[open] = numel / known;
  return true;
}

Error reshape(KernelContext& context, const Tensor& self, const EValue& shape, Tensor& out) {
  size_t sizes[kMaxRank];
  if (shape.list.size > kMaxRank || !resolve_shape(shape, self.numel(), sizes)) {
    return context.fail(Error::InvalidArgument, "the shape has not the tensor's %zu elements", self.numel());
  }
  return resize(context, out, sizes, shape.list.size);
}

Error view_copy(KernelContext& context, const Tensor& self, const EValue& shape, Tensor& out) {
  ARMDEPLOY_TRY(reshape(context, self, shape, out));
  if (!self.contiguous() || !out.contiguous() || self.dtype != out.dtype) {
    return context.fail(Error::NotSupported, "needs two contiguous tensors of one type");
  }
  if (self.nbytes() > 0) memmove(out.data, self.data, self.nbytes());
  return Error::Ok;
}

// The result is no copy: it gets the input's memory.
// In place: the tensor is no out argument, which the core would have checked.
Error copy_into(KernelContext& context, Tensor& self, const Tensor& source) {
  if (self.constant) return context.fail(Error::InvalidArgument, "the tensor is a constant of the program");
  return copy_from(context, self, source, self);
}

Error alias_view(KernelContext& context, const Tensor& self, const EValue& shape, Tensor& out) {
  ARMDEPLOY_TRY(reshape(context, self, shape, out));
  if (out.nbytes() > self.nbytes() || out.capacity > self.capacity || out.dtype != self.dtype) {
    return context.fail(Error::InvalidArgument, "the view is larger than its tensor, or of another type");
  }
  out.data = self.data;
  out.constant = self.constant;
  return Error::Ok;
}

Error expand(KernelContext& context, const Tensor& self, const EValue& shape, Tensor& out) {
  const View source(self);
  View view;
  view.data = source.data;
  view.rank = shape.list.size;
  if (view.rank > kMaxRank || view.rank < source.rank) {
    return context.fail(Error::InvalidArgument, "%zu dimensions cannot become %zu", source.rank, view.rank);
  }
  const size_t added = view.rank - source.rank;
  for (size_t d = 0; d < view.rank; d++) {
    const bool old = d >= added;
    const size_t own = old ? source.size[d - added] : 1;
    const int64_t wanted = shape.int_at(d);
    const bool keep = wanted == -1 && old;
    if (!keep && (wanted < 0 || (own != 1 && static_cast<size_t>(wanted) != own))) {
      return context.fail(Error::InvalidArgument, "dimension %zu of size %zu cannot become %ld", d, own,
                          static_cast<long>(wanted));
    }
    view.size[d] = keep ? own : static_cast<size_t>(wanted);
    view.stride[d] = own == 1 ? 0 : source.stride[d - added];
  }
  return copy_to(context, out, view, self.dtype);
}

Error squeeze(KernelContext& context, const Tensor& self, const EValue* const* dims, size_t count,
              Tensor& out) {
  View view(self);
  uint32_t gone = 0;
  for (size_t k = 0; k < count; k++) {
    size_t dim = 0;
    ARMDEPLOY_TRY(dim_of(context, *dims[k], self.rank, &dim));
    if (self.rank > 0 && view.size[dim] == 1) gone |= 1u << dim;
  }
  for (size_t dim = self.rank; dim-- > 0;) {
    if (gone >> dim & 1u) remove_dim(view, dim);
  }
  return copy_to(context, out, view, self.dtype);
}

Error unsqueeze(KernelContext& context, const Tensor& self, const EValue& argument, Tensor& out) {
  View view(self);
  size_t dim = 0;
  if (view.rank == kMaxRank) return context.fail(Error::NotSupported, "%zu dimensions", kMaxRank + 1);
  ARMDEPLOY_TRY(dim_of(context, argument, view.rank + 1, &dim));
  insert_dim(view, dim);
  return copy_to(context, out, view, self.dtype);
}

Error slice_copy(KernelContext& context, Span<EValue*> args) {
  View view(*args[0]->t);
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], view.rank, &dim));
  ARMDEPLOY_TRY(
      slice(context, view, dim, int_or(*args[2], 0), int_or(*args[3], INT64_MAX), args[4]->to_int()));
  return copy_to(context, *args[5]->t, view, args[0]->t->dtype);
}

Error narrow_copy(KernelContext& context, Span<EValue*> args) {
  View view(*args[0]->t);
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], view.rank, &dim));
  const int64_t size = view.rank == 0 ? 0 : static_cast<int64_t>(view.size[dim]);
  const int64_t start = args[2]->to_int() < 0 ? args[2]->to_int() + size : args[2]->to_int();
  const int64_t length = args[3]->to_int();
  if (start < 0 || length < 0 || start > size || length > size - start) {
    return context.fail(Error::InvalidArgument, "%ld elements from %ld of %ld", static_cast<long>(length),
                        static_cast<long>(start), static_cast<long>(size));
  }
  ARMDEPLOY_TRY(slice(context, view, dim, start, start + length, 1));
  return copy_to(context, *args[4]->t, view, args[0]->t->dtype);
}

Error select_copy(KernelContext& context, Span<EValue*> args) {
  View view(*args[0]->t);
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], view.rank, &dim));
  ARMDEPLOY_TRY(select(context, view, dim, args[2]->to_int()));
  return copy_to(context, *args[3]->t, view, args[0]->t->dtype);
}

Error transpose_copy(KernelContext& context, Span<EValue*> args) {
  size_t a = 0;
  size_t b = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], args[0]->t->rank, &a));
  ARMDEPLOY_TRY(dim_of(context, *args[2], args[0]->t->rank, &b));
  return transpose(context, *args[0]->t, a, b, *args[3]->t);
}

Error t_copy(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  if (self.rank > 2)
    return context.fail(Error::InvalidArgument, "%u dimensions", static_cast<unsigned>(self.rank));
  return self.rank == 2 ? transpose(context, self, 0, 1, *args[1]->t) : copy_all(context, self, *args[1]->t);
}

// Element (i …) of the result is element (i mod size) of the input.
Error repeat(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  const EValue& repeats = *args[1];
  const size_t rank = repeats.list.size;
  if (rank < self.rank || rank * 2 > kMaxRank)
    return context.fail(Error::InvalidArgument, "%zu repeats", rank);
  // The result and the input as (repeat, size) pairs of dimensions: the repeats have stride 0 in the input.
  View source(self);
  while (source.rank < rank) insert_dim(source, 0);
  size_t sizes[kMaxRank];
  for (size_t d = 0; d < rank; d++) {
    const int64_t times = repeats.int_at(d);
    if (times < 0 || times > INT32_MAX) return context.fail(Error::InvalidArgument, "a negative repeat");
    sizes[d] = source.size[d] * static_cast<size_t>(times);
  }
  Tensor& out = *args[2]->t;
  ARMDEPLOY_TRY(resize(context, out, sizes, rank));
  View target(out);
  for (size_t d = rank; d-- > 0;) {
    const ptrdiff_t stride = target.stride[d];
    const size_t size = source.size[d];
    insert_dim(target, d);
    insert_dim(source, d);
    target.size[d] = static_cast<size_t>(repeats.int_at(d));
    target.stride[d] = stride * static_cast<ptrdiff_t>(size);
    target.size[d + 1] = size;
  }
  copy(target, out.dtype, source, self.dtype);
  return Error::Ok;
}

Error flip(KernelContext& context, Span<EValue*> args) {
  View view(*args[0]->t);
  uint32_t seen = 0;
  for (size_t k = 0; k < args[1]->list.size; k++) {
    size_t dim = 0;
    ARMDEPLOY_TRY(dim_of(context, *args[1]->list[k], view.rank, &dim));
    if (view.rank == 0 || view.size[dim] == 0) continue;
    if (seen >> dim & 1u) return context.fail(Error::InvalidArgument, "dimension %zu appears twice", dim);
    seen |= 1u << dim;
    view.data += static_cast<ptrdiff_t>(view.size[dim] - 1) * view.stride[dim];
    view.stride[dim] = -view.stride[dim];
  }
  return copy_to(context, *args[2]->t, view, args[0]->t->dtype);
}

Error unfold(KernelContext& context, Span<EValue*> args) {
  View view(*args[0]->t);
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[1], view.rank, &dim));
  const int64_t size = args[2]->to_int();
  const int64_t step = args[3]->to_int();
  const int64_t length = view.rank == 0 ? 0 : static_cast<int64_t>(view.size[dim]);
  if (view.rank == 0 || view.rank == kMaxRank || size < 0 || size > length || step < 1) {
    return context.fail(Error::InvalidArgument, "windows of %ld, step %ld, in %ld elements",
                        static_cast<long>(size), static_cast<long>(step), static_cast<long>(length));
  }
  insert_dim(view, view.rank);
  view.size[view.rank - 1] = static_cast<size_t>(size);
  view.stride[view.rank - 1] = view.stride[dim];
  view.size[dim] = static_cast<size_t>((length - size) / step + 1);
  view.stride[dim] *= static_cast<ptrdiff_t>(step < length ? step : 1);
  return copy_to(context, *args[4]->t, view, args[0]->t->dtype);
}

Error as_strided(KernelContext& context, Span<EValue*> args) {
  const Tensor& self = *args[0]->t;
  const EValue& size = *args[1];
  const EValue& stride = *args[2];
  const size_t bytes = element_size(self.dtype);
  View view;
  view.data = self.as<uint8_t>();
  view.rank = size.list.size;
  if (view.rank > kMaxRank || stride.list.size != view.rank)
    return context.fail(Error::InvalidArgument, "the strides");
  int64_t last = int_or(*args[3], 0);
  bool fits = last >= 0;
  bool empty = false;
  for (size_t d = 0; d < view.rank && fits; d++) {
    const int64_t count = size.int_at(d);
    int64_t reach = 0;
    fits = count >= 0 && count <= INT32_MAX && stride.int_at(d) >= 0 &&
           !__builtin_mul_overflow(stride.int_at(d), count > 0 ? count - 1 : 0, &reach) &&
           !__builtin_add_overflow(last, reach, &last);
    empty |= count == 0;
    view.size[d] = static_cast<size_t>(count);
    view.stride[d] = static_cast<ptrdiff_t>(stride.int_at(d)) * static_cast<ptrdiff_t>(bytes);
  }
  if (!fits || (!empty && static_cast<uint64_t>(last) >= self.numel())) {
    return context.fail(Error::InvalidArgument, "the view leaves the tensor's %zu elements", self.numel());
  }
  if (!empty) view.data += static_cast<size_t>(int_or(*args[3], 0)) * bytes;
  return copy_to(context, *args[4]->t, view, self.dtype);
}

Error diagonal(KernelContext& context, Span<EValue*> args) {
  View view(*args[0]->t);
  const int64_t offset = args[1]->to_int();
  size_t row = 0;
  size_t column = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[2], view.rank, &row));
  ARMDEPLOY_TRY(dim_of(context, *args[3], view.rank, &column));
  if (view.rank < 2 || row == column) return context.fail(Error::InvalidArgument, "needs two dimensions");
  const int64_t rows = static_cast<int64_t>(view.size[row]);
  const int64_t columns = static_cast<int64_t>(view.size[column]);
  const int64_t skip_rows = offset < 0 ? (offset < -rows ? rows : -offset) : 0;
  const int64_t skip_columns = offset > 0 ? (offset > columns ? columns : offset) : 0;
  const int64_t below = rows - skip_rows;
  const int64_t right = columns - skip_columns;
  view.data += static_cast<ptrdiff_t>(skip_rows) * view.stride[row];
  view.data += static_cast<ptrdiff_t>(skip_columns) * view.stride[column];
  const ptrdiff_t stride = view.stride[row] + view.stride[column];
  remove_dim(view, row > column ? row : column);
  remove_dim(view, row > column ? column : row);
  insert_dim(view, view.rank);
  view.size[view.rank - 1] = static_cast<size_t>(below < right ? below : right);
  view.stride[view.rank - 1] = stride;
  return copy_to(context, *args[4]->t, view, args[0]->t->dtype);
}

}  // namespace

KERNEL(aten_clone_out, "T.T", copy_all(context, *args[0]->t, *args[2]->t))
KERNEL(aten_alias_copy_out, "TT", copy_all(context, *args[0]->t, *args[1]->t))
KERNEL(aten_detach_copy_out, "TT", copy_all(context, *args[0]->t, *args[1]->t))
KERNEL(aten_lift_fresh_copy_out, "TT", copy_all(context, *args[0]->t, *args[1]->t))
KERNEL(aten__to_copy_out, "T..T", copy_all(context, *args[0]->t, *args[3]->t))
KERNEL(dim_order_ops__to_dim_order_copy_out, "T..T", copy_all(context, *args[0]->t, *args[3]->t))
KERNEL(dim_order_ops__clone_dim_order_out, "T..T", copy_all(context, *args[0]->t, *args[3]->t))
KERNEL(et_copy__h2d_copy_out, "TT", copy_all(context, *args[0]->t, *args[1]->t))
KERNEL(et_copy__d2h_copy_out, "TT", copy_all(context, *args[0]->t, *args[1]->t))
KERNEL(aten_copy_out, "TT.T", copy_from(context, *args[0]->t, *args[1]->t, *args[3]->t))
KERNEL(aten_copy_, "TT.", copy_into(context, *args[0]->t, *args[1]->t))
KERNEL(aten_permute_copy_out, "TLT", permute(context, *args[0]->t, *args[1], *args[2]->t))
KERNEL(aten_transpose_copy_int_out, "TSST", transpose_copy(context, args))
KERNEL(aten_t_copy_out, "TT", t_copy(context, args))
KERNEL(aten_view_copy_out, "TLT", view_copy(context, *args[0]->t, *args[1], *args[2]->t))
KERNEL(executorch_prim_et_view_default, "TLV", alias_view(context, *args[0]->t, *args[1], *args[2]->t))
KERNEL(aten_expand_copy_out, "TL.T", expand(context, *args[0]->t, *args[1], *args[3]->t))
KERNEL(aten_squeeze_copy_dim_out, "TST", squeeze(context, *args[0]->t, &args.data[1], 1, *args[2]->t))
KERNEL(aten_squeeze_copy_dims_out, "TLT",
       squeeze(context, *args[0]->t, args[1]->list.data, args[1]->list.size, *args[2]->t))
KERNEL(aten_unsqueeze_copy_out, "TST", unsqueeze(context, *args[0]->t, *args[1], *args[2]->t))
KERNEL(aten_slice_copy_Tensor_out, "TSssST", slice_copy(context, args))
KERNEL(aten_narrow_copy_out, "TSSST", narrow_copy(context, args))
KERNEL(aten_select_copy_int_out, "TSST", select_copy(context, args))
KERNEL(aten_repeat_out, "TLT", repeat(context, args))
KERNEL(aten_flip_out, "TLT", flip(context, args))
KERNEL(aten_unfold_copy_out, "TSSST", unfold(context, args))
KERNEL(aten_as_strided_copy_out, "TLLsT", as_strided(context, args))
KERNEL(aten_diagonal_copy_out, "TSSST", diagonal(context, args))

}  // namespace armdeploy::kernels

// SPDX-License-Identifier: Apache-2.0
// Tensors put together and taken apart along a dimension, and parts of tensors replaced.
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/shape.h"

namespace armdeploy::kernels {
namespace {

// PyTorch lets cat take empty tensors of one dimension among others.
bool is_legacy_empty(const Tensor& tensor) {
  return tensor.rank == 1 && tensor.sizes[0] == 0;
}

Error copy_part(KernelContext& context, const View& part, const Tensor& out, const Tensor& from) {
  for (size_t d = 0; d < part.rank; d++) {
    if (part.size[d] != static_cast<size_t>(from.sizes[d])) {
      return context.fail(Error::InvalidArgument, "dimension %zu is %ld, expected %zu", d,
                          static_cast<long>(from.sizes[d]), part.size[d]);
    }
  }
  copy(part, out.dtype, View(from), from.dtype);
  return Error::Ok;
}

Error cat(KernelContext& context, const EValue& tensors, const EValue& dimension, Tensor& out) {
  const Tensor* shape = nullptr;
  for (size_t k = 0; k < tensors.list.size; k++) {
    const Tensor* item = tensors.tensor_at(k);
    if (shape == nullptr || is_legacy_empty(*shape)) shape = item;
  }
  if (shape == nullptr || shape->rank == 0)
    return context.fail(Error::InvalidArgument, "nothing to concatenate");
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, dimension, shape->rank, &dim));
  View whole(*shape);
  whole.size[dim] = 0;
  for (size_t k = 0; k < tensors.list.size; k++) {
    const Tensor& item = *tensors.tensor_at(k);
    if (is_legacy_empty(item)) continue;
    if (item.rank != shape->rank) return context.fail(Error::InvalidArgument, "tensors of several ranks");
    whole.size[dim] += static_cast<size_t>(item.sizes[dim]);
  }
  ARMDEPLOY_TRY(resize(context, out, whole.size, whole.rank));
  View part(out);
  for (size_t k = 0; k < tensors.list.size; k++) {
    const Tensor& item = *tensors.tensor_at(k);
    if (is_legacy_empty(item)) continue;
    part.size[dim] = static_cast<size_t>(item.sizes[dim]);
    ARMDEPLOY_TRY(copy_part(context, part, out, item));
    part.data += static_cast<ptrdiff_t>(part.size[dim]) * part.stride[dim];
  }
  return Error::Ok;
}

Error stack(KernelContext& context, const EValue& tensors, const EValue& dimension, Tensor& out) {
  const size_t count = tensors.list.size;
  if (count == 0 || tensors.tensor_at(0)->rank == kMaxRank)
    return context.fail(Error::InvalidArgument, "no tensors");
  View whole(*tensors.tensor_at(0));
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, dimension, whole.rank + 1, &dim));
  insert_dim(whole, dim);
  whole.size[dim] = count;
  ARMDEPLOY_TRY(resize(context, out, whole.size, whole.rank));
  for (size_t k = 0; k < count; k++) {
    const Tensor& item = *tensors.tensor_at(k);
    View part(out);
    ARMDEPLOY_TRY(select(context, part, dim, static_cast<int64_t>(k)));
    if (item.rank != part.rank) return context.fail(Error::InvalidArgument, "tensors of several ranks");
    ARMDEPLOY_TRY(copy_part(context, part, out, item));
  }
  return Error::Ok;
}

// Result k is `sizes[k]` elements of `dim`, or `size` when there is no list (the last one what is left).
Error split(KernelContext& context, const Tensor& self, const EValue& sizes, const EValue& dimension,
            const EValue& outs) {
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, dimension, self.rank, &dim));
  const bool equal = sizes.is_scalar();
  int64_t start = 0;
  for (size_t k = 0; k < outs.list.size; k++) {
    if (!equal && k >= sizes.list.size)
      return context.fail(Error::InvalidArgument, "more results than sizes");
    const int64_t length = equal ? sizes.to_int() : sizes.int_at(k);
    if (length < 0 || length > INT32_MAX)
      return context.fail(Error::InvalidArgument, "a part of %ld", static_cast<long>(length));
    View part(self);
    ARMDEPLOY_TRY(slice(context, part, dim, start, start + length, 1));
    ARMDEPLOY_TRY(copy_to(context, *outs.tensor_at(k), part, self.dtype));
    start += length;
  }
  return Error::Ok;
}

Error unbind(KernelContext& context, const Tensor& self, const EValue& dimension, const EValue& outs) {
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, dimension, self.rank, &dim));
  for (size_t k = 0; k < outs.list.size; k++) {
    View part(self);
    ARMDEPLOY_TRY(select(context, part, dim, static_cast<int64_t>(k)));
    ARMDEPLOY_TRY(copy_to(context, *outs.tensor_at(k), part, self.dtype));
  }
  return Error::Ok;
}

// `self` with the elements that `part` (a view of the result) covers taken from `source`.
Error copy_over(KernelContext& context, const Tensor& self, const Tensor& source, Tensor& out, size_t dim,
                const EValue& start, const EValue& end, const EValue& step) {
  ARMDEPLOY_TRY(copy_to(context, out, View(self), self.dtype));
  View part(out);
  ARMDEPLOY_TRY(slice(context, part, dim, int_or(start, 0), int_or(end, INT64_MAX), step.to_int()));
  if (source.rank != part.rank) return context.fail(Error::InvalidArgument, "a source of another rank");
  return copy_part(context, part, out, source);
}

Error slice_scatter(KernelContext& context, Span<EValue*> args) {
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[2], args[0]->t->rank, &dim));
  return copy_over(context, *args[0]->t, *args[1]->t, *args[6]->t, dim, *args[3], *args[4], *args[5]);
}

Error select_scatter(KernelContext& context, Span<EValue*> args) {
  Tensor& out = *args[4]->t;
  size_t dim = 0;
  ARMDEPLOY_TRY(dim_of(context, *args[2], args[0]->t->rank, &dim));
  ARMDEPLOY_TRY(copy_to(context, out, View(*args[0]->t), args[0]->t->dtype));
  View part(out);
  ARMDEPLOY_TRY(select(context, part, dim, args[3]->to_int()));
  if (args[1]->t->rank != part.rank) return context.fail(Error::InvalidArgument, "a source of another rank");
  return copy_part(context, part, out, *args[1]->t);
}

}  // namespace

KERNEL(aten_cat_out, "XST", cat(context, *args[0], *args[1], *args[2]->t))
KERNEL(aten_stack_out, "XST", stack(context, *args[0], *args[1], *args[2]->t))
KERNEL(aten_split_copy_Tensor_out, "TSSX", split(context, *args[0]->t, *args[1], *args[2], *args[3]))
KERNEL(aten_split_with_sizes_copy_out, "TLSX", split(context, *args[0]->t, *args[1], *args[2], *args[3]))
KERNEL(aten_unbind_copy_int_out, "TSX", unbind(context, *args[0]->t, *args[1], *args[2]))
KERNEL(aten_slice_scatter_out, "TTSssST", slice_scatter(context, args))
KERNEL(aten_select_scatter_out, "TTSST", select_scatter(context, args))

}  // namespace armdeploy::kernels

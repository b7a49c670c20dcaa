// SPDX-License-Identifier: Apache-2.0
// Tensors made from scalars.
#include <cmath>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/shape.h"

namespace armdeploy::kernels {
namespace {

// One element, repeated over the whole of `view`.
void fill_view(const View& view, ScalarType type, const EValue& value) {
  double element = 0;  // room for one element of any type
  store_scalar(type, &element, value);
  View source;
  source.data = reinterpret_cast<uint8_t*>(&element);
  copy(view, type, source, type);
}

Error fill(Tensor& out, const EValue& value) {
  fill_view(View(out), out.dtype, value);
  return Error::Ok;
}

Error resize_to_list(KernelContext& context, Tensor& out, const EValue& shape) {
  size_t sizes[kMaxRank];
  if (shape.list.size > kMaxRank) return context.fail(Error::NotSupported, "%zu dimensions", shape.list.size);
  for (size_t d = 0; d < shape.list.size; d++) {
    if (shape.int_at(d) < 0 || shape.int_at(d) > INT32_MAX)
      return context.fail(Error::InvalidArgument, "the shape");
    sizes[d] = static_cast<size_t>(shape.int_at(d));
  }
  return resize(context, out, sizes, shape.list.size);
}

Error full(KernelContext& context, const EValue& shape, const EValue& value, Tensor& out) {
  ARMDEPLOY_TRY(resize_to_list(context, out, shape));
  return fill(out, value);
}

Error constant(KernelContext& context, const EValue& shape, int64_t number, Tensor& out) {
  EValue value;
  value.tag = Tag::Int;
  value.i = number;
  return full(context, shape, value, out);
}

Error fill_like(KernelContext& context, const Tensor& shape, const EValue& value, Tensor& out) {
  ARMDEPLOY_TRY(resize_like(context, out, shape));
  return fill(out, value);
}

Error fill_from_tensor(KernelContext& context, const Tensor& self, const Tensor& value, Tensor& out) {
  if (value.numel() != 1)
    return context.fail(Error::InvalidArgument, "a value of %zu elements", value.numel());
  ARMDEPLOY_TRY(resize_like(context, out, self));
  View source(value);
  source.rank = 0;
  copy(View(out), out.dtype, source, value.dtype);
  return Error::Ok;
}

Error scalar_tensor(KernelContext& context, const EValue& value, Tensor& out) {
  ARMDEPLOY_TRY(resize(context, out, nullptr, 0));
  return fill(out, value);
}

// start + i * step, computed in double as the portable kernel does.
Error arange(KernelContext& context, double start, double end, double step, Tensor& out) {
  const double count = std::ceil((end - start) / step);
  if (!(count >= 0 && count <= INT32_MAX))
    return context.fail(Error::InvalidArgument, "the range has no length");
  const size_t size = static_cast<size_t>(count);
  ARMDEPLOY_TRY(resize(context, out, &size, 1));
  const size_t bytes = element_size(out.dtype);
  for (size_t i = 0; i < size; i++) {
    store<double>(out.dtype, out.as<uint8_t>() + i * bytes, start + static_cast<double>(i) * step);
  }
  return Error::Ok;
}

// pad: (before, after) of the last dimension first. Negative padding cuts off.
Error constant_pad(KernelContext& context, const Tensor& self, const EValue& pad, const EValue& value,
                   Tensor& out) {
  View source(self);
  const size_t pairs = pad.list.size / 2;
  if (pad.list.size % 2 != 0 || pairs > source.rank)
    return context.fail(Error::InvalidArgument, "the padding's length");
  size_t sizes[kMaxRank];
  int64_t before[kMaxRank] = {};
  for (size_t d = 0; d < source.rank; d++) sizes[d] = source.size[d];
  for (size_t k = 0; k < pairs; k++) {
    const size_t d = source.rank - 1 - k;
    before[d] = pad.int_at(2 * k);
    const int64_t after = pad.int_at(2 * k + 1);
    const int64_t limit = INT32_MAX;
    if (before[d] > limit || before[d] < -limit || after > limit || after < -limit) {
      return context.fail(Error::InvalidArgument, "the padding of dimension %zu", d);
    }
    const int64_t size = static_cast<int64_t>(source.size[d]);
    const int64_t padded = size + before[d] + after;
    if (padded < 0) return context.fail(Error::InvalidArgument, "the padding of dimension %zu", d);
    sizes[d] = static_cast<size_t>(padded);
    const int64_t first = before[d] < 0 ? -before[d] : 0;
    ARMDEPLOY_TRY(slice(context, source, d, first, after < 0 ? size + after : size, 1));
  }
  ARMDEPLOY_TRY(resize(context, out, sizes, source.rank));
  View inside(out);
  fill_view(inside, out.dtype, value);
  for (size_t d = 0; d < source.rank; d++) {
    inside.size[d] = source.size[d];
    if (before[d] > 0) inside.data += static_cast<ptrdiff_t>(before[d]) * inside.stride[d];
  }
  copy(inside, out.dtype, source, self.dtype);
  return Error::Ok;
}

}  // namespace

KERNEL(aten_full_out, "LST", full(context, *args[0], *args[1], *args[2]->t))
KERNEL(aten_full_like_out, "TS.T", fill_like(context, *args[0]->t, *args[1], *args[3]->t))
KERNEL(aten_fill_Scalar_out, "TST", fill_like(context, *args[0]->t, *args[1], *args[2]->t))
KERNEL(aten_fill_Tensor_out, "TTT", fill_from_tensor(context, *args[0]->t, *args[1]->t, *args[2]->t))
KERNEL(aten_zeros_out, "LT", constant(context, *args[0], 0, *args[1]->t))
KERNEL(aten_ones_out, "LT", constant(context, *args[0], 1, *args[1]->t))
KERNEL(aten_empty_out, "L.T", resize_to_list(context, *args[2]->t, *args[0]))
KERNEL(dim_order_ops__empty_dim_order_out, "L.T", resize_to_list(context, *args[2]->t, *args[0]))
KERNEL(aten_scalar_tensor_out, "ST", scalar_tensor(context, *args[0], *args[1]->t))
KERNEL(aten_arange_out, "ST", arange(context, 0, args[0]->to_double(), 1, *args[1]->t))
KERNEL(aten_arange_start_out, "SSST",
       arange(context, args[0]->to_double(), args[1]->to_double(), args[2]->to_double(), *args[3]->t))
KERNEL(aten_constant_pad_nd_out, "TLST", constant_pad(context, *args[0]->t, *args[1], *args[2], *args[3]->t))

}  // namespace armdeploy::kernels

// SPDX-License-Identifier: Apache-2.0
// quantized_decomposed: quantise and dequantise, one scale for a tensor or one for each channel.
// The arithmetic is that of executorch/kernels/quantized/cpu: the scale's reciprocal in single precision,
// rounding to nearest even, the zero point added in float; only the conversion to an integer saturates here,
// where the original leaves values beyond int64 to the compiler.
#include <cmath>

#include "runtime/kernels/args.h"
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/integer.h"
#include "runtime/kernels/loop.h"

namespace armdeploy::kernels {
namespace {

struct Quantization {
  ScalarType from;
  ScalarType to;
  double scale;
  int32_t zero_point;
  int32_t low;
  int32_t high;
};

int32_t quantize_value(float scaled, const Quantization& q) {
  const int32_t code = to_int32(static_cast<float>(q.zero_point) + std::nearbyint(scaled));
  return code < q.low ? q.low : code > q.high ? q.high : code;
}

template <class T>
void quantize_row(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  const Quantization& q = *static_cast<const Quantization*>(context);
  const float inverse = 1.0f / static_cast<float>(q.scale);
  T values[kChunk];
  int64_t codes[kChunk];
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t n = count - done < kChunk ? count - done : kChunk;
    const ptrdiff_t at = static_cast<ptrdiff_t>(done);
    load_row<T>(q.from, data[1] + at * stride[1], stride[1], n, values);
    for (size_t i = 0; i < n; i++) codes[i] = quantize_value(static_cast<float>(inverse * values[i]), q);
    store_row<int64_t>(q.to, data[0] + at * stride[0], stride[0], n, codes);
  }
}

// (code - zero point) as int32, times the scale in float.
void dequantize_row(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  const Quantization& q = *static_cast<const Quantization*>(context);
  const float scale = static_cast<float>(q.scale);
  int64_t codes[kChunk];
  float values[kChunk];
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t n = count - done < kChunk ? count - done : kChunk;
    const ptrdiff_t at = static_cast<ptrdiff_t>(done);
    load_row<int64_t>(q.from, data[1] + at * stride[1], stride[1], n, codes);
    for (size_t i = 0; i < n; i++)
      values[i] = static_cast<float>(static_cast<int32_t>(codes[i] - q.zero_point)) * scale;
    store_row<float>(q.to, data[0] + at * stride[0], stride[0], n, values);
  }
}

bool is_code(ScalarType type) {
  return type == ScalarType::Byte || type == ScalarType::Char || type == ScalarType::Short ||
         type == ScalarType::UInt16 || type == ScalarType::Int;
}

// Codes are `codes`, real numbers `reals`; the limits fit int32.
Error check_types(KernelContext& context, const Tensor& codes, const Tensor& reals, const EValue& low,
                  const EValue& high) {
  if (!is_code(codes.dtype) || !is_floating(reals.dtype)) {
    return context.fail(Error::InvalidArgument, "quantised type %d, real type %d",
                        static_cast<int>(codes.dtype), static_cast<int>(reals.dtype));
  }
  if (low.to_int() < INT32_MIN || high.to_int() > INT32_MAX || low.to_int() > high.to_int()) {
    return context.fail(Error::InvalidArgument, "quantisation limits beyond int32, or in the wrong order");
  }
  return Error::Ok;
}

Quantization quantization(const Tensor& from, const Tensor& to, double scale, int64_t zero_point,
                          const EValue& low, const EValue& high) {
  return {from.dtype,
          to.dtype,
          scale,
          static_cast<int32_t>(zero_point),
          static_cast<int32_t>(low.to_int()),
          static_cast<int32_t>(high.to_int())};
}

bool run(RowFn row, Quantization& q, const View& to, const View& from) {
  const View views[] = {to, from};
  Loop loop;
  if (!loop.plan(views, 2)) return false;
  loop.run(row, &q);
  return true;
}

// args: input, scale, zero point, low, high, …, out at `out`.
Error per_tensor(KernelContext& context, Span<EValue*> args, double scale, int64_t zero_point,
                 size_t out_index, bool quantize) {
  const Tensor& input = *args[0]->t;
  Tensor& out = *args[out_index]->t;
  ARMDEPLOY_TRY(check_types(context, quantize ? out : input, quantize ? input : out, *args[3], *args[4]));
  ARMDEPLOY_TRY(resize_like(context, out, input));
  Quantization q = quantization(input, out, scale, zero_point, *args[3], *args[4]);
  const RowFn row = !quantize                           ? dequantize_row
                    : input.dtype == ScalarType::Double ? quantize_row<double>
                                                        : quantize_row<float>;
  run(row, q, View(out), View(input));
  return Error::Ok;
}

Error per_tensor_of_tensors(KernelContext& context, Span<EValue*> args, size_t out_index, bool quantize) {
  const Tensor& scale = *args[1]->t;
  const Tensor& zero_point = *args[2]->t;
  if (scale.numel() != 1 || zero_point.numel() != 1) {
    return context.fail(Error::InvalidArgument, "scale and zero point must have one element");
  }
  return per_tensor(context, args, load<double>(scale.dtype, scale.data),
                    load<int64_t>(zero_point.dtype, zero_point.data), out_index, quantize);
}

View channel_of(const Tensor& tensor, size_t axis, size_t channel) {
  View view(tensor);
  view.data += static_cast<ptrdiff_t>(channel) * view.stride[axis];
  view.size[axis] = 1;
  return view;
}

template <class T>
T item(const Tensor& tensor, size_t index) {
  return load<T>(tensor.dtype, tensor.as<uint8_t>() + index * element_size(tensor.dtype));
}

// args: input, scales, zero points or None, axis, low, high, …, out at `out_index`.
Error per_channel(KernelContext& context, Span<EValue*> args, size_t out_index, bool quantize) {
  const Tensor& input = *args[0]->t;
  const Tensor& scales = *args[1]->t;
  const Tensor* zero_points = args[2]->is_none() ? nullptr : args[2]->t;
  Tensor& out = *args[out_index]->t;
  ARMDEPLOY_TRY(check_types(context, quantize ? out : input, quantize ? input : out, *args[4], *args[5]));
  size_t axis = 0;
  if (!wrap_dim(args[3]->to_int(), input.rank, &axis) || input.rank == 0) {
    return context.fail(Error::InvalidArgument, "axis %ld of %u dimensions",
                        static_cast<long>(args[3]->to_int()), static_cast<unsigned>(input.rank));
  }
  const size_t channels = static_cast<size_t>(input.sizes[axis]);
  if (scales.numel() != channels || (zero_points && zero_points->numel() != channels)) {
    return context.fail(Error::InvalidArgument, "%zu scales for %zu channels", scales.numel(), channels);
  }
  ARMDEPLOY_TRY(resize_like(context, out, input));
  const RowFn row = !quantize                           ? dequantize_row
                    : input.dtype == ScalarType::Double ? quantize_row<double>
                                                        : quantize_row<float>;
  for (size_t channel = 0; channel < channels; channel++) {
    Quantization q = quantization(input, out, item<double>(scales, channel),
                                  zero_points ? item<int64_t>(*zero_points, channel) : 0, *args[4], *args[5]);
    run(row, q, channel_of(out, axis, channel), channel_of(input, axis, channel));
  }
  return Error::Ok;
}

}  // namespace

KERNEL(quantized_decomposed_quantize_per_tensor_out, "TSSSSST",
       per_tensor(context, args, args[1]->to_double(), args[2]->to_int(), 6, true))
KERNEL(quantized_decomposed_dequantize_per_tensor_out, "TSSSSS.T",
       per_tensor(context, args, args[1]->to_double(), args[2]->to_int(), 7, false))
KERNEL(cortex_m_dequantize_per_tensor_out, "TSSSSST",
       per_tensor(context, args, args[1]->to_double(), args[2]->to_int(), 6, false))
KERNEL(quantized_decomposed_quantize_per_tensor_Tensor_out, "TTTSSST",
       per_tensor_of_tensors(context, args, 6, true))
KERNEL(quantized_decomposed_dequantize_per_tensor_Tensor_out, "TTTSSS.T",
       per_tensor_of_tensors(context, args, 7, false))
KERNEL(quantized_decomposed_quantize_per_channel_out, "TTTSSSST", per_channel(context, args, 7, true))
KERNEL(quantized_decomposed_dequantize_per_channel_out, "TTtSSSS.T", per_channel(context, args, 8, false))

}  // namespace armdeploy::kernels

// SPDX-License-Identifier: Apache-2.0
// cortex_m::quantize_per_tensor as cores with Helium compute it, whatever core this runs on: elements in
// groups of 16, in memory order, are multiplied and rounded by one fused multiply-add with 3 * 2^22, whose
// float has no fraction bits; the integer in its low bits is narrowed to 16 bits before it is clamped.
// Elements left over round the product first, then to an integer.
#include <cmath>
#include <cstring>

#include "runtime/kernels/args.h"
#include "runtime/kernels/dtype.h"
#include "runtime/kernels/integer.h"

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#include <arm_mve.h>
#endif

namespace armdeploy::kernels {
namespace {

constexpr size_t kGroup = 16;
constexpr float kMagic = 3 << 22;
constexpr int32_t kMagicBits = 0x4B400000;

struct Parameters {
  float inverse;
  int32_t zero_point;
  int32_t low;
  int32_t high;
};

int32_t clamp(int32_t code, const Parameters& p) {
  return code < p.low ? p.low : code > p.high ? p.high : code;
}

#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)

void store_codes(int8_t* to, int32x4_t codes) {
  vstrbq_s32(to, codes);
}
void store_codes(int16_t* to, int32x4_t codes) {
  vstrhq_s32(to, codes);
}

template <class Code>
void quantize_groups(Code* to, const float* from, size_t count, const Parameters& p) {
  const float32x4_t magic = vdupq_n_f32(kMagic);
  const float32x4_t inverse = vdupq_n_f32(p.inverse);
  const int32x4_t offset = vdupq_n_s32(wrap_add(p.zero_point, -kMagicBits));
  const int32x4_t low = vdupq_n_s32(p.low);
  const int32x4_t high = vdupq_n_s32(p.high);
  for (size_t i = 0; i < count; i += 4) {
    const float32x4_t sum = vfmaq_f32(magic, vld1q_f32(from + i), inverse);
    const int32x4_t wide = vaddq_s32(vreinterpretq_s32_f32(sum), offset);
    const int32x4_t narrow = vmovlbq_s16(vreinterpretq_s16_s32(wide));  // the low halves, sign extended
    store_codes(to + i, vminq_s32(vmaxq_s32(narrow, low), high));
  }
}

#else

template <class Code>
void quantize_groups(Code* to, const float* from, size_t count, const Parameters& p) {
  const int32_t offset = wrap_add(p.zero_point, -kMagicBits);
  for (size_t i = 0; i < count; i++) {
    const float sum = std::fma(from[i], p.inverse, kMagic);
    int32_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    to[i] = static_cast<Code>(clamp(static_cast<int16_t>(wrap_add(bits, offset)), p));
  }
}

#endif

template <class Code>
void quantize(Code* to, const float* from, size_t count, const Parameters& p) {
  const size_t whole = count - count % kGroup;
  quantize_groups(to, from, whole, p);
  for (size_t i = whole; i < count; i++) {
    const int32_t code = to_int32(std::nearbyint(from[i] * p.inverse));
    to[i] = static_cast<Code>(clamp(wrap_add(code, p.zero_point), p));
  }
}

bool same_order(const Tensor& a, const Tensor& b) {
  return a.rank == b.rank && memcmp(a.dim_order, b.dim_order, a.rank) == 0;
}

}  // namespace

Error cortex_m_quantize_per_tensor_out(KernelContext& context, Span<EValue*> args) {
  ARMDEPLOY_TRY(check_args(context, args, "TSSSSST"));
  const Tensor& input = *args[0]->t;
  Tensor& out = *args[6]->t;
  const bool narrow = out.dtype == ScalarType::Char;
  const int64_t low = args[3]->to_int();
  const int64_t high = args[4]->to_int();
  const int64_t limit = narrow ? INT8_MAX : INT16_MAX;
  if (input.dtype != ScalarType::Float || (!narrow && out.dtype != ScalarType::Short)) {
    return context.fail(Error::InvalidArgument, "from element type %d to %d", static_cast<int>(input.dtype),
                        static_cast<int>(out.dtype));
  }
  if (low < -limit - 1 || high > limit || low > high) {
    return context.fail(Error::InvalidArgument, "quantisation limits beyond the result's type");
  }
  ARMDEPLOY_TRY(resize_like(context, out, input));
  if (!same_order(input, out))
    return context.fail(Error::NotSupported, "input and result in two memory orders");
  const Parameters p = {1.0f / static_cast<float>(args[1]->to_double()),
                        static_cast<int32_t>(args[2]->to_int()), static_cast<int32_t>(low),
                        static_cast<int32_t>(high)};
  if (narrow) {
    quantize(out.as<int8_t>(), input.as<const float>(), input.numel(), p);
  } else {
    quantize(out.as<int16_t>(), input.as<const float>(), input.numel(), p);
  }
  return Error::Ok;
}

}  // namespace armdeploy::kernels

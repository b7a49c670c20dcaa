// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/dtype.h"

#include <cstring>
#include <type_traits>

namespace armdeploy::kernels {
namespace {

// IEEE half precision in software: the cores without it (Cortex-M0+ to M33) run the same code.
float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u;
  const uint32_t fraction = bits & 1023u;
  float value;
  if (exponent == 0) {
    value = static_cast<float>(fraction) * 0x1p-24f;
  } else {
    const uint32_t wide = (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
    memcpy(&value, &wide, 4);
  }
  uint32_t all;
  memcpy(&all, &value, 4);
  all |= sign;
  memcpy(&value, &all, 4);
  return value;
}

// Adds half a unit of the last kept bit, ties to even: `value` without its low `bits` bits.
uint32_t round_off(uint32_t value, unsigned bits) {
  return (value + ((1u << (bits - 1)) - 1) + ((value >> bits) & 1u)) >> bits;
}

uint16_t float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t half;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u;
  } else if (magnitude >= 0x47800000u) {
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {
    half = round_off(magnitude - 0x38000000u, 13);
  } else {
    // A denormal half: adding 2^-1 * 2^-24 * 2^24 lets the float adder round at the right bit.
    float aligned;
    memcpy(&aligned, &magnitude, 4);
    aligned += 0.5f;
    uint32_t sum;
    memcpy(&sum, &aligned, 4);
    half = sum - 0x3F000000u;
  }
  return static_cast<uint16_t>(sign | half);
}

float bfloat_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

uint16_t float_to_bfloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FC0u;
  return static_cast<uint16_t>(round_off(bits, 16));
}

// Storage types whose C++ type does not say what they mean.
struct HalfBits {
  uint16_t bits;
};
struct BFloatBits {
  uint16_t bits;
};

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<From, HalfBits>) {
    return convert<To>(half_to_float(value.bits));
  } else if constexpr (std::is_same_v<From, BFloatBits>) {
    return convert<To>(bfloat_to_float(value.bits));
  } else if constexpr (std::is_same_v<To, HalfBits>) {
    return {float_to_half(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, BFloatBits>) {
    return {float_to_bfloat(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From kLimit = 9223372036854775808.0f;
    if (!(value >= -kLimit)) return static_cast<To>(value < 0 ? INT64_MIN : 0);
    return static_cast<To>(value < kLimit ? static_cast<int64_t>(value) : INT64_MAX);
  } else {
    return static_cast<To>(value);
  }
}

// Calls `visit` with a value of the C++ type that holds elements of `type`.
template <class Visit>
void with_storage(ScalarType type, Visit visit) {
  switch (type) {
    case ScalarType::Byte:
    case ScalarType::QUInt8:
      return visit(uint8_t());
    case ScalarType::Char:
    case ScalarType::QInt8:
      return visit(int8_t());
    case ScalarType::Short:
      return visit(int16_t());
    case ScalarType::UInt16:
    case ScalarType::Bits16:
      return visit(uint16_t());
    case ScalarType::Int:
    case ScalarType::QInt32:
      return visit(int32_t());
    case ScalarType::UInt32:
      return visit(uint32_t());
    case ScalarType::Long:
    case ScalarType::UInt64:
      return visit(int64_t());
    case ScalarType::Half:
      return visit(HalfBits());
    case ScalarType::BFloat16:
      return visit(BFloatBits());
    case ScalarType::Float:
      return visit(float());
    case ScalarType::Double:
      return visit(double());
    case ScalarType::Bool:
      return visit(bool());
    default:
      return;  // check_args lets no other type in
  }
}

}  // namespace

bool is_floating(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::Float || type == ScalarType::Double ||
         type == ScalarType::BFloat16;
}

ScalarType promote(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (is_floating(a) || is_floating(b)) {
    if (!is_floating(a)) return b;
    if (!is_floating(b)) return a;
    if (a == ScalarType::Double || b == ScalarType::Double) return ScalarType::Double;
    return ScalarType::Float;  // Float with a half, or Half with BFloat16
  }
  if (a == ScalarType::Bool) return b;
  if (b == ScalarType::Bool) return a;
  const bool byte = a == ScalarType::Byte || b == ScalarType::Byte;
  const ScalarType wider = a > b ? a : b;  // Char < Short < Int < Long by number
  return byte && wider == ScalarType::Char ? ScalarType::Short : wider;
}

ScalarType promote(ScalarType tensor, const EValue& scalar) {
  if (is_floating(tensor) || scalar.tag == Tag::Bool) return tensor;
  if (scalar.tag == Tag::Double) return ScalarType::Float;
  return tensor == ScalarType::Bool ? ScalarType::Long : tensor;
}

Compute compute_of(ScalarType type) {
  if (type == ScalarType::Double) return Compute::Double;
  return is_floating(type) ? Compute::Single : Compute::Integer;
}

template <class T>
void load_row(ScalarType type, const uint8_t* from, ptrdiff_t stride, size_t count, T* to) {
  with_storage(type, [=](auto stored) mutable {
    for (size_t i = 0; i < count; i++, from += stride) {
      if constexpr (std::is_same_v<decltype(stored), bool>) {
        stored = *from != 0;  // a file's byte may be any: memcpy could make a bool that is neither
      } else {
        memcpy(&stored, from, sizeof(stored));
      }
      to[i] = convert<T>(stored);
    }
  });
}

template <class T>
void store_row(ScalarType type, uint8_t* to, ptrdiff_t stride, size_t count, const T* from) {
  with_storage(type, [=](auto stored) mutable {
    for (size_t i = 0; i < count; i++, to += stride) {
      stored = convert<decltype(stored)>(from[i]);
      memcpy(to, &stored, sizeof(stored));
    }
  });
}

void store_scalar(ScalarType type, void* to, const EValue& scalar) {
  if (scalar.tag == Tag::Double) {
    store<double>(type, to, scalar.d);
  } else {
    store<int64_t>(type, to, scalar.to_int());
  }
}

template <class T>
T scalar_as(const EValue& scalar, ScalarType type) {
  double element = 0;  // room for one element of any type
  store_scalar(type, &element, scalar);
  return load<T>(type, &element);
}

#define INSTANTIATE(T)                                                           \
  template void load_row<T>(ScalarType, const uint8_t*, ptrdiff_t, size_t, T*);  \
  template void store_row<T>(ScalarType, uint8_t*, ptrdiff_t, size_t, const T*); \
  template T scalar_as<T>(const EValue&, ScalarType);
INSTANTIATE(int64_t)
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace armdeploy::kernels

// SPDX-License-Identifier: Apache-2.0
// Arithmetic that is defined for every value: integers wrap, conversions saturate.
#pragma once

#include <cstdint>
#include <type_traits>

namespace armdeploy::kernels {

template <class T>
T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
T wrap_multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class T>
T wrap_negate(T a) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(0 - static_cast<uint64_t>(a));
  } else {
    return -a;
  }
}

// As the VCVT instruction does: saturates, NaN gives 0.
inline int32_t to_int32(float value) {
  if (value >= 2147483648.0f) return INT32_MAX;
  if (value <= -2147483648.0f) return INT32_MIN;
  return value == value ? static_cast<int32_t>(value) : 0;
}

}  // namespace armdeploy::kernels

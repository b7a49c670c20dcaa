// SPDX-License-Identifier: Apache-2.0
// Element types: what they promote to, and rows of them as int64, float or double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/evalue.h"
#include "runtime/core/tensor.h"

namespace armdeploy::kernels {

bool is_floating(ScalarType type);

// PyTorch's promotion of two tensors' types.
ScalarType promote(ScalarType a, ScalarType b);

// PyTorch's promotion of a tensor's type with a Scalar: only a higher category (bool, integer, float) counts.
ScalarType promote(ScalarType tensor, const EValue& scalar);

// The C++ type a kernel computes in: integers in int64_t, Half, BFloat16 and Float in float, Double in
// double.
enum class Compute : uint8_t { Integer, Single, Double };
Compute compute_of(ScalarType type);

constexpr size_t kChunk = 16;  // elements that kernels convert at a time, in buffers on the stack

// `count` elements of `type`, `stride` bytes apart, converted to T (int64_t, float, double).
template <class T>
void load_row(ScalarType type, const uint8_t* from, ptrdiff_t stride, size_t count, T* to);

// The same outwards. Integers keep their low bits; floats are truncated to integers (saturating at int64, NaN
// gives 0); Bool is "not zero".
template <class T>
void store_row(ScalarType type, uint8_t* to, ptrdiff_t stride, size_t count, const T* from);

template <class T>
T load(ScalarType type, const void* from) {
  T value;
  load_row<T>(type, static_cast<const uint8_t*>(from), 0, 1, &value);
  return value;
}

template <class T>
void store(ScalarType type, void* to, T value) {
  store_row<T>(type, static_cast<uint8_t*>(to), 0, 1, &value);
}

// `scalar` as one element of `type`.
void store_scalar(ScalarType type, void* to, const EValue& scalar);

// `scalar` as an element of `type`, for example 300 as Char is 44.
template <class T>
T scalar_as(const EValue& scalar, ScalarType type);

}  // namespace armdeploy::kernels

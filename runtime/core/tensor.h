// SPDX-License-Identifier: Apache-2.0
// Dense tensors: element type, shape (outermost dimension first), order of the dimensions in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/error.h"
#include "runtime/core/span.h"

namespace armdeploy {

// scalar_type.fbs of ExecuTorch.
enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  QInt8 = 12,
  QUInt8 = 13,
  QInt32 = 14,
  BFloat16 = 15,
  Bits16 = 22,
  Float8e5m2 = 23,
  Float8e4m3fn = 24,
  Float8e5m2fnuz = 25,
  Float8e4m3fnuz = 26,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

// Bytes of one element; 0 for a type that is not in the list above (or has no whole bytes).
size_t element_size(ScalarType type);

enum class Dynamism : uint8_t { Static = 0, Bounded = 1 };

constexpr size_t kMaxRank = 16;

struct Tensor {
  void* data;            // null until an input or a kernel gives it memory (inputs outside planned memory)
  const int32_t* sizes;  // `rank` dimensions, none negative
  const uint8_t* dim_order;  // a permutation of 0 … rank-1, outermost in memory first
  int32_t* resizable;        // where `sizes` lives when it may change; null: the shape is fixed
  size_t capacity;           // bytes: the most this tensor may hold (its upper bound)
  uint8_t rank;
  ScalarType dtype;
  Dynamism dynamism;
  bool constant;  // data is in the program: never write to it

  size_t numel() const;
  size_t nbytes() const { return numel() * element_size(dtype); }
  bool contiguous() const;  // dim_order is 0, 1, 2, …

  // Strides in elements, `rank` of them, from sizes and dim_order.
  void strides(size_t* out) const;

  // Gives the tensor a new shape of the same rank. Static: only its own shape (else NotSupported); bounded:
  // any shape whose elements fit `capacity`, none negative (else NotSupported). Another rank: NotSupported.
  Error resize(const int32_t* new_sizes, size_t new_rank);

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace armdeploy

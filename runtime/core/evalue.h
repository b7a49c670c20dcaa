// SPDX-License-Identifier: Apache-2.0
// One value of a method: a scalar, string, tensor or list.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/span.h"
#include "runtime/core/tensor.h"

namespace armdeploy {

// ExecuTorch's tag.h, by number.
enum class Tag : uint32_t {
  None = 0,
  Tensor = 1,
  String = 2,
  Double = 3,
  Int = 4,
  Bool = 5,
  ListBool = 6,
  ListDouble = 7,
  ListInt = 8,
  ListTensor = 9,
  ListOptionalTensor = 11,
};

struct EValue {
  Tag tag;
  union {
    int64_t i;
    double d;
    bool b;
    Tensor* t;
    Span<const char> s;          // size without the terminator, which is there
    Span<const bool> bools;      // ListBool
    Span<const double> doubles;  // ListDouble
    Span<EValue*> list;  // ListInt, ListTensor, ListOptionalTensor: the method's own values; read by *_at
  };

  EValue() : tag(Tag::None), i(0) {}

  bool is_none() const { return tag == Tag::None; }
  bool is_tensor() const { return tag == Tag::Tensor; }
  // Item `k` of a ListInt / of a tensor list (null: None, or a move put another kind of value there).
  int64_t int_at(size_t k) const { return list[k]->tag == Tag::Int ? list[k]->i : 0; }
  Tensor* tensor_at(size_t k) const { return list[k] && list[k]->is_tensor() ? list[k]->t : nullptr; }
  // A Scalar argument: Int, Double or Bool as a double / as an int64 (a Double is truncated; 0 beyond int64).
  bool is_scalar() const { return tag == Tag::Int || tag == Tag::Double || tag == Tag::Bool; }
  double to_double() const { return tag == Tag::Double ? d : static_cast<double>(to_int()); }
  int64_t to_int() const {
    if (tag != Tag::Double) return tag == Tag::Int ? i : static_cast<int64_t>(b);
    return d > -9223372036854775808.0 && d < 9223372036854775808.0 ? static_cast<int64_t>(d) : 0;
  }
};

}  // namespace armdeploy

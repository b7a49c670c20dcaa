// SPDX-License-Identifier: Apache-2.0
// A pointer and a count.
#pragma once

#include <cstddef>

namespace armdeploy {

template <class T>
struct Span {
  T* data = nullptr;
  size_t size = 0;

  T& operator[](size_t i) const { return data[i]; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
  bool empty() const { return size == 0; }
};

}  // namespace armdeploy

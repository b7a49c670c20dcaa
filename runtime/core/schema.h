// SPDX-License-Identifier: Apache-2.0
// The generated FlatBuffers code, quiet and without assertions: everything read through it was verified
// before.
#pragma once

#ifdef NDEBUG
#define FLATBUFFERS_ASSERT(condition) static_cast<void>(0)
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include "program_generated.h"
#pragma GCC diagnostic pop

#include <cstring>

namespace armdeploy {

namespace fb = executorch_flatbuffer;

// Element `index` of a vector of 8-byte scalars, which the verifier lets lie at any address.
template <class T>
T element64(const flatbuffers::Vector<T>& vector, size_t index) {
  T value;
  std::memcpy(&value, vector.Data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
size_t size_of(const flatbuffers::Vector<T>* vector) {
  return vector ? vector->size() : 0;
}

}  // namespace armdeploy

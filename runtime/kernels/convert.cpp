// SPDX-License-Identifier: Apache-2.0
// Copies between views, with or without a change of element type.
#include <cstring>

#include "runtime/kernels/dtype.h"
#include "runtime/kernels/loop.h"

namespace armdeploy::kernels {
namespace {

struct Types {
  ScalarType to;
  ScalarType from;
};

// memcpy of a constant size becomes one load and one store.
template <size_t kBytes>
void copy_elements(uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  uint8_t* to = data[0];
  const uint8_t* from = data[1];
  for (; count > 0; count--, to += stride[0], from += stride[1]) memcpy(to, from, kBytes);
}

void copy_row(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  const size_t bytes = element_size(static_cast<const Types*>(context)->to);
  const ptrdiff_t dense = static_cast<ptrdiff_t>(bytes);
  if (stride[0] == dense && stride[1] == dense) {
    memmove(data[0], data[1], count * bytes);
  } else if (bytes == 1) {
    copy_elements<1>(data, stride, count);
  } else if (bytes == 2) {
    copy_elements<2>(data, stride, count);
  } else if (bytes == 4) {
    copy_elements<4>(data, stride, count);
  } else {
    copy_elements<8>(data, stride, count);
  }
}

template <class T>
void convert_row(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  const Types& types = *static_cast<const Types*>(context);
  T values[kChunk];
  for (size_t done = 0; done < count; done += kChunk) {
    const size_t n = count - done < kChunk ? count - done : kChunk;
    const ptrdiff_t at = static_cast<ptrdiff_t>(done);
    load_row<T>(types.from, data[1] + at * stride[1], stride[1], n, values);
    store_row<T>(types.to, data[0] + at * stride[0], stride[0], n, values);
  }
}

RowFn converter(ScalarType from) {
  switch (compute_of(from)) {
    case Compute::Integer:
      return convert_row<int64_t>;
    case Compute::Single:
      return convert_row<float>;
    default:
      return convert_row<double>;
  }
}

}  // namespace

bool copy(const View& to, ScalarType to_type, const View& from, ScalarType from_type) {
  const View views[] = {to, from};
  Loop loop;
  if (!loop.plan(views, 2)) return false;
  Types types = {to_type, from_type};
  loop.run(to_type == from_type ? copy_row : converter(from_type), &types);
  return true;
}

}  // namespace armdeploy::kernels

// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/shape.h"

#include <cstring>

namespace armdeploy::kernels {

Error dim_of(KernelContext& context, const EValue& argument, size_t rank, size_t* out) {
  if (wrap_dim(argument.to_int(), rank, out)) return Error::Ok;
  return context.fail(Error::InvalidArgument, "dimension %ld of %zu", static_cast<long>(argument.to_int()),
                      rank);
}

void remove_dim(View& view, size_t dim) {
  view.rank--;
  memmove(view.size + dim, view.size + dim + 1, (view.rank - dim) * sizeof(view.size[0]));
  memmove(view.stride + dim, view.stride + dim + 1, (view.rank - dim) * sizeof(view.stride[0]));
}

void insert_dim(View& view, size_t dim) {
  memmove(view.size + dim + 1, view.size + dim, (view.rank - dim) * sizeof(view.size[0]));
  memmove(view.stride + dim + 1, view.stride + dim, (view.rank - dim) * sizeof(view.stride[0]));
  view.rank++;
  view.size[dim] = 1;
  view.stride[dim] = 0;
}

namespace {

// Python's rule for a slice's end points.
int64_t bound(int64_t position, int64_t size) {
  if (position < 0) position += size;
  return position < 0 ? 0 : position > size ? size : position;
}

}  // namespace

Error slice(KernelContext& context, View& view, size_t dim, int64_t start, int64_t end, int64_t step) {
  if (view.rank == 0) return context.fail(Error::InvalidArgument, "a scalar cannot be sliced");
  if (step < 1)
    return context.fail(Error::InvalidArgument, "step %ld, must be positive", static_cast<long>(step));
  const int64_t size = static_cast<int64_t>(view.size[dim]);
  const int64_t first = bound(start, size);
  const int64_t last = bound(end, size);
  const int64_t length = last - first;
  view.size[dim] = length <= 0 ? 0 : static_cast<size_t>((length - 1) / step + 1);
  view.data += static_cast<ptrdiff_t>(first) * view.stride[dim];
  // A step beyond the end is never taken, and might not fit.
  view.stride[dim] *= static_cast<ptrdiff_t>(step < size ? step : 1);
  return Error::Ok;
}

Error select(KernelContext& context, View& view, size_t dim, int64_t index) {
  const int64_t size = view.rank == 0 ? 0 : static_cast<int64_t>(view.size[dim]);
  const int64_t wrapped = index < 0 ? index + size : index;
  if (wrapped < 0 || wrapped >= size) {
    return context.fail(Error::InvalidArgument, "index %ld of %ld", static_cast<long>(index),
                        static_cast<long>(size));
  }
  view.data += static_cast<ptrdiff_t>(wrapped) * view.stride[dim];
  remove_dim(view, dim);
  return Error::Ok;
}

Error copy_to(KernelContext& context, Tensor& out, const View& from, ScalarType type) {
  ARMDEPLOY_TRY(resize(context, out, from.size, from.rank));
  if (copy(View(out), out.dtype, from, type)) return Error::Ok;
  return context.fail(Error::InvalidArgument, "the shapes do not fit");
}

}  // namespace armdeploy::kernels

// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/args.h"

#include <cstring>

namespace armdeploy::kernels {
namespace {

bool usable(const Tensor& tensor) {
  return element_size(tensor.dtype) != 0 && (tensor.data != nullptr || tensor.numel() == 0);
}

bool all_tensors(const EValue& list, bool optional) {
  for (size_t i = 0; i < list.list.size; i++) {
    const Tensor* item = list.tensor_at(i);
    if (item ? !usable(*item) : !optional) return false;
  }
  return true;
}

bool matches(const EValue& value, char kind) {
  switch (kind) {
    case 'T':
      return value.is_tensor() && usable(*value.t);
    case 'V':
      return value.is_tensor() && element_size(value.t->dtype) != 0;
    case 'S':
      return value.is_scalar();
    case 'L':
      return value.tag == Tag::ListInt;
    case 'X':
      return value.tag == Tag::ListTensor && all_tensors(value, false);
    case 'x':
      return (value.tag == Tag::ListTensor || value.tag == Tag::ListOptionalTensor) &&
             all_tensors(value, true);
    case 'A':
      return value.tag == Tag::String;
    case '.':
      return true;
    default:  // t, s, l, a
      return value.is_none() || matches(value, static_cast<char>(kind - 'a' + 'A'));
  }
}

}  // namespace

Error check_args(KernelContext& context, Span<EValue*> args, const char* signature) {
  const size_t count = strlen(signature);
  if (args.size < count) {
    return context.fail(Error::InvalidProgram, "%zu arguments, the operator has %zu", args.size, count);
  }
  for (size_t i = 0; i < count; i++) {
    if (!matches(*args[i], signature[i])) {
      return context.fail(Error::InvalidProgram, "argument %zu is of kind %u, expected '%c'", i,
                          static_cast<unsigned>(args[i]->tag), signature[i]);
    }
  }
  return Error::Ok;
}

Error resize(KernelContext& context, Tensor& out, const size_t* sizes, size_t rank) {
  int32_t shape[kMaxRank];
  if (rank > kMaxRank) return context.fail(Error::NotSupported, "a result of %zu dimensions", rank);
  for (size_t d = 0; d < rank; d++) {
    if (sizes[d] > INT32_MAX) return context.fail(Error::InvalidArgument, "dimension %zu of the result", d);
    shape[d] = static_cast<int32_t>(sizes[d]);
  }
  const Error error = out.resize(shape, rank);
  return error == Error::Ok ? error : context.fail(error, "the result's shape does not fit its tensor");
}

Error resize_like(KernelContext& context, Tensor& out, const Tensor& shape) {
  const Error error = out.resize(shape.sizes, shape.rank);
  return error == Error::Ok ? error : context.fail(error, "the result's shape does not fit its tensor");
}

bool wrap_dim(int64_t dim, size_t rank, size_t* out) {
  const int64_t limit = rank == 0 ? 1 : static_cast<int64_t>(rank);
  if (dim < -limit || dim >= limit) return false;
  *out = static_cast<size_t>(dim < 0 ? dim + limit : dim);
  return true;
}

}  // namespace armdeploy::kernels

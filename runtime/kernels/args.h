// SPDX-License-Identifier: Apache-2.0
// The door of every kernel: number and kinds of its arguments are checked once, by a signature string.
#pragma once

#include <cstddef>

#include "runtime/core/registry.h"

namespace armdeploy::kernels {

// One letter an argument, in schema order:
//   T tensor          t tensor or None
//   S scalar          s scalar or None
//   L list of ints    l list of ints or None
//   X list of tensors x list whose items may be None
//   A string          a string or None
//   V tensor that may have no memory yet
//   . anything (an argument that this runtime has no use for)
// Arguments past the signature (ExecuTorch repeats the returned values) are not looked at.
// A tensor passes with memory behind it and an element type that has a size.
// Errors: InvalidProgram, naming the argument.
Error check_args(KernelContext& context, Span<EValue*> args, const char* signature);

// The shape of `out` becomes `sizes`; NotSupported, with both shapes, when it cannot.
Error resize(KernelContext& context, Tensor& out, const size_t* sizes, size_t rank);
Error resize_like(KernelContext& context, Tensor& out, const Tensor& shape);

// The dimension `dim` of `rank` counted from the end when negative; false when there is none.
bool wrap_dim(int64_t dim, size_t rank, size_t* out);

// `value` as an index: an Int that fits, or `otherwise` for None.
inline int64_t int_or(const EValue& value, int64_t otherwise) {
  return value.is_none() ? otherwise : value.to_int();
}

// Defines a kernel: `args` are checked by `signature`, then the expression, of type Error, is its result.
#define KERNEL(name, signature, ...)                       \
  Error name(KernelContext& context, Span<EValue*> args) { \
    ARMDEPLOY_TRY(check_args(context, args, signature));   \
    return __VA_ARGS__;                                    \
  }

// Returns early with the error of an expression of type Error.
#define ARMDEPLOY_TRY(expression)                              \
  do {                                                         \
    const ::armdeploy::Error try_error = (expression);         \
    if (try_error != ::armdeploy::Error::Ok) return try_error; \
  } while (false)

}  // namespace armdeploy::kernels

// SPDX-License-Identifier: Apache-2.0
// The kernels that are linked in. The table is generated (selective build); nothing registers at run time.
#pragma once

#include <cstddef>

#include "runtime/core/arena.h"
#include "runtime/core/error.h"
#include "runtime/core/evalue.h"
#include "runtime/core/span.h"

namespace armdeploy {

struct KernelContext {
  Arena& temp;     // released when the kernel returns
  const char* op;  // "aten::add.out"

  // Reports "aten::add.out: …" and returns `error`.
  Error fail(Error error, const char* format, ...) __attribute__((format(printf, 3, 4)));
};

// `args` are the values of the call as the .pte lists them: the schema's arguments in order, the out
// argument(s) among them, then the returned value(s) again (ExecuTorch's emitter repeats out there).
// Their number and the types are the caller's word: check args.size and every tag before use.
using KernelFn = Error (*)(KernelContext& context, Span<EValue*> args);

struct Kernel {
  const char* name;  // "quantized_decomposed::quantize_per_tensor.out"; no ".overload" when that is empty
  KernelFn run;
};

extern const Kernel kKernels[];
extern const size_t kKernelCount;

// The kernel of operator `name` with `overload` (may be empty); null when it is not linked in.
const Kernel* find_kernel(const char* name, const char* overload);

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// Arguments that select part of a tensor, as views.
#pragma once

#include "runtime/kernels/args.h"
#include "runtime/kernels/loop.h"

namespace armdeploy::kernels {

// The dimension `argument` names; InvalidArgument when there is none.
Error dim_of(KernelContext& context, const EValue& argument, size_t rank, size_t* out);

void remove_dim(View& view, size_t dim);
void insert_dim(View& view, size_t dim);  // of size 1

// view[…, start:end:step, …] along `dim`; start and end as Python reads them. InvalidArgument: step < 1.
Error slice(KernelContext& context, View& view, size_t dim, int64_t start, int64_t end, int64_t step);

// view[…, index, …]: `dim` is gone. InvalidArgument: index out of range.
Error select(KernelContext& context, View& view, size_t dim, int64_t index);

// Gives `out` the shape of `from` and copies, converting.
Error copy_to(KernelContext& context, Tensor& out, const View& from, ScalarType type);

}  // namespace armdeploy::kernels

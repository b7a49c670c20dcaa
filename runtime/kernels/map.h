// SPDX-License-Identifier: Apache-2.0
// Elementwise operators: load, convert, compute a row, convert, store. An operator is a function of one
// element; everything else (broadcasting, type promotion, memory order) is here.
#pragma once

#include "runtime/kernels/args.h"
#include "runtime/kernels/dtype.h"

namespace armdeploy::kernels {

constexpr size_t kMaxInputs = 3;
constexpr size_t kMaxParams = 3;

// out[i] of `count` from in[k][i] (one pointer an input) and the operator's scalars.
template <class T>
using MapRow = void (*)(T* out, const T* const* in, const T* params, size_t count);

// An operator in the three types of computation; null where the operator has no meaning in that type.
struct MapRows {
  MapRow<int64_t> integer;
  MapRow<float> single;
  MapRow<double> real;
};

// A call of an operator: which values it reads, in which type it computes.
struct MapCall {
  const MapRows& rows;
  ScalarType common;  // inputs and scalars are converted to this type first
  const Tensor* inputs[kMaxInputs];
  size_t input_count;
  const EValue* params[kMaxParams];
  size_t param_count;
};

// `out` gets the broadcast shape of the inputs and the results.
// Errors: InvalidArgument (shapes, a float result for an integer tensor), NotSupported (no rows for the
// type).
Error map(KernelContext& context, const MapCall& call, Tensor& out);

// Rows of `Op::run(a[, b[, c]], params)`; a template over the type, or a plain function of float and double.
template <class Op, class T, size_t kInputs>
void map_row(T* out, const T* const* in, const T* params, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if constexpr (kInputs == 1) {
      out[i] = static_cast<T>(Op::run(in[0][i], params));
    } else if constexpr (kInputs == 2) {
      out[i] = static_cast<T>(Op::run(in[0][i], in[1][i], params));
    } else {
      out[i] = static_cast<T>(Op::run(in[0][i], in[1][i], in[2][i], params));
    }
  }
}

template <class Op, size_t kInputs>
constexpr MapRows any_rows = {map_row<Op, int64_t, kInputs>, map_row<Op, float, kInputs>,
                              map_row<Op, double, kInputs>};
template <class Op, size_t kInputs>
constexpr MapRows float_rows = {nullptr, map_row<Op, float, kInputs>, map_row<Op, double, kInputs>};
template <class Op, size_t kInputs>
constexpr MapRows integer_rows = {map_row<Op, int64_t, kInputs>, nullptr, nullptr};

}  // namespace armdeploy::kernels

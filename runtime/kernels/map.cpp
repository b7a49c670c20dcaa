// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/map.h"

#include <type_traits>

#include "runtime/kernels/loop.h"

namespace armdeploy::kernels {
namespace {

template <class T>
struct Job {
  MapRow<T> row;
  ScalarType types[1 + kMaxInputs];  // of the result, then of the inputs
  size_t inputs;
  T params[kMaxParams];
};

template <class T>
bool is_plain(ScalarType type, ptrdiff_t stride) {
  constexpr ScalarType kOwn = std::is_same_v<T, int64_t> ? ScalarType::Long
                              : std::is_same_v<T, float> ? ScalarType::Float
                                                         : ScalarType::Double;
  return type == kOwn && stride == static_cast<ptrdiff_t>(sizeof(T));
}

// Rows of elements that are T already are computed in place; others through buffers.
template <class T>
void run_row(void* context, uint8_t* const* data, const ptrdiff_t* stride, size_t count) {
  const Job<T>& job = *static_cast<const Job<T>*>(context);
  bool plain[1 + kMaxInputs];
  bool all_plain = true;
  for (size_t k = 0; k <= job.inputs; k++) {
    plain[k] = is_plain<T>(job.types[k], stride[k]);
    all_plain &= plain[k];
  }
  const size_t step = all_plain ? count : kChunk;
  T buffer[1 + kMaxInputs][kChunk];
  for (size_t done = 0; done < count; done += step) {
    const size_t n = count - done < step ? count - done : step;
    const ptrdiff_t at = static_cast<ptrdiff_t>(done);
    const T* in[kMaxInputs];
    for (size_t k = 1; k <= job.inputs; k++) {
      uint8_t* from = data[k] + at * stride[k];
      in[k - 1] = plain[k] ? reinterpret_cast<T*>(from) : buffer[k];
      if (!plain[k]) load_row<T>(job.types[k], from, stride[k], n, buffer[k]);
    }
    uint8_t* to = data[0] + at * stride[0];
    T* out = plain[0] ? reinterpret_cast<T*>(to) : buffer[0];
    job.row(out, in, job.params, n);
    if (!plain[0]) store_row<T>(job.types[0], to, stride[0], n, buffer[0]);
  }
}

template <class T>
Error run(KernelContext& context, const MapCall& call, MapRow<T> row, const Loop& loop, const Tensor& out) {
  if (row == nullptr) {
    return context.fail(Error::NotSupported, "not for element type %d", static_cast<int>(call.common));
  }
  Job<T> job = {row, {out.dtype}, call.input_count, {}};
  for (size_t k = 0; k < call.input_count; k++) job.types[k + 1] = call.inputs[k]->dtype;
  for (size_t k = 0; k < call.param_count; k++) job.params[k] = scalar_as<T>(*call.params[k], call.common);
  loop.run(run_row<T>, &job);
  return Error::Ok;
}

// NumPy's rule: shapes are aligned at the end, 1 stretches.
bool broadcast_shape(const MapCall& call, size_t* sizes, size_t* rank) {
  *rank = 0;
  for (size_t k = 0; k < call.input_count; k++) {
    if (call.inputs[k]->rank > *rank) *rank = call.inputs[k]->rank;
  }
  for (size_t d = 0; d < *rank; d++) sizes[d] = 1;
  for (size_t k = 0; k < call.input_count; k++) {
    const Tensor& input = *call.inputs[k];
    for (size_t d = 0; d < input.rank; d++) {
      size_t& size = sizes[*rank - input.rank + d];
      const size_t own = static_cast<size_t>(input.sizes[d]);
      if (own != 1 && size != 1 && own != size) return false;
      if (own != 1) size = own;
    }
  }
  return true;
}

}  // namespace

Error map(KernelContext& context, const MapCall& call, Tensor& out) {
  size_t sizes[kMaxRank];
  size_t rank = 0;
  if (!broadcast_shape(call, sizes, &rank)) {
    return context.fail(Error::InvalidArgument, "the inputs' shapes cannot be broadcast together");
  }
  ARMDEPLOY_TRY(resize(context, out, sizes, rank));
  const View views[] = {View(out), View(*call.inputs[0]), View(*call.inputs[call.input_count > 1 ? 1 : 0]),
                        View(*call.inputs[call.input_count - 1])};
  Loop loop;
  if (!loop.plan(views, 1 + call.input_count)) {
    return context.fail(Error::InvalidArgument, "the inputs' shapes do not fit the result's");
  }
  switch (compute_of(call.common)) {
    case Compute::Integer:
      return run<int64_t>(context, call, call.rows.integer, loop, out);
    case Compute::Single:
      return run<float>(context, call, call.rows.single, loop, out);
    default:
      return run<double>(context, call, call.rows.real, loop, out);
  }
}

}  // namespace armdeploy::kernels

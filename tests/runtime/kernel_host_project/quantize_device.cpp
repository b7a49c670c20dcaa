// SPDX-License-Identifier: Apache-2.0
// cortex_m::quantize_per_tensor on a device with semihosting: in.bin (floats) to out.bin (int8).
//   quantize SCALE ZERO_POINT
#include <cstdio>
#include <cstdlib>

#include "runtime/core/registry.h"

namespace armdeploy::kernels {
Error cortex_m_quantize_per_tensor_out(KernelContext& context, Span<EValue*> args);
}

using namespace armdeploy;

// registry.cpp needs a table of kernels; this program has one kernel and calls it itself.
Error KernelContext::fail(Error error, const char* format, ...) {
  std::puts(format);
  return error;
}

namespace {

alignas(16) float input[1 << 14];
alignas(16) int8_t output[1 << 14];

EValue tensor_value(Tensor& tensor) {
  EValue value;
  value.tag = Tag::Tensor;
  value.t = &tensor;
  return value;
}

EValue int_value(int64_t number) {
  EValue value;
  value.tag = Tag::Int;
  value.i = number;
  return value;
}

}  // namespace

int main(int count, char** arguments) {
  FILE* file = std::fopen("in.bin", "rb");
  if (count != 3 || file == nullptr) return 2;
  const int32_t size =
      static_cast<int32_t>(std::fread(input, sizeof(float), sizeof input / sizeof input[0], file));
  const uint8_t order = 0;
  Tensor in = {input, &size, &order, nullptr, sizeof input, 1, ScalarType::Float, Dynamism::Static, false};
  Tensor out = {output, &size, &order, nullptr, sizeof output, 1, ScalarType::Char, Dynamism::Static, false};
  EValue values[] = {
      tensor_value(in), {}, int_value(std::atol(arguments[2])), int_value(-128), int_value(127), int_value(1),
      tensor_value(out)};
  values[1].tag = Tag::Double;
  values[1].d = std::atof(arguments[1]);
  EValue* pointers[7];
  for (size_t i = 0; i < 7; i++) pointers[i] = &values[i];
  Arena temp;
  KernelContext context = {temp, "quantize"};
  if (kernels::cortex_m_quantize_per_tensor_out(context, {pointers, 7}) != Error::Ok) return 3;
  file = std::fopen("out.bin", "wb");
  return std::fwrite(output, 1, static_cast<size_t>(size), file) == static_cast<size_t>(size)
             ? std::fclose(file)
             : 4;
}

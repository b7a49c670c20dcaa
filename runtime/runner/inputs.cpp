// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/inputs.h"

#include <cstring>

#include "runtime/runner/files.h"

namespace armdeploy {
namespace {

Error read_scalar(Method& method, size_t index, const char* path) {
  uint8_t bytes[8];
  const size_t size = method.input(index).tag == Tag::Bool ? 1 : sizeof bytes;
  if (Error error = files::read_exactly(path, bytes, size); error != Error::Ok) return error;
  return method.set_input(index, {bytes, size});
}

Error read_tensor(Method& method, size_t index, const char* path) {
  Tensor* tensor = method.input_tensor(index);
  if (tensor == nullptr) return read_scalar(method, index, path);
  return files::read_exactly(path, tensor->data, tensor->nbytes());
}

// One element with the value 1, `size` bytes of it.
const void* one(ScalarType type, size_t* size) {
  static const float float_one = 1.0f;
  static const double double_one = 1.0;
  static const uint64_t integer_one = 1;  // little-endian: its first bytes are a narrower 1
  static const uint16_t half_one = 0x3C00, bfloat_one = 0x3F80;
  *size = element_size(type);
  switch (type) {
    case ScalarType::Float:
      return &float_one;
    case ScalarType::Double:
      return &double_one;
    case ScalarType::Half:
      return &half_one;
    case ScalarType::BFloat16:
      return &bfloat_one;
    default:
      return &integer_one;
  }
}

}  // namespace

Error read_inputs(Method& method, const Options& options) {
  if (options.input_count != method.input_count()) {
    return fail(Error::InvalidArgument, "command line: %zu input files, method '%s' has %zu inputs",
                options.input_count, method.name(), method.input_count());
  }
  for (size_t index = 0; index < method.input_count(); ++index) {
    if (Error error = read_tensor(method, index, options.inputs[index]); error != Error::Ok) return error;
  }
  return Error::Ok;
}

Error fill_inputs_with_ones(Method& method) {
  for (size_t index = 0; index < method.input_count(); ++index) {
    Tensor* tensor = method.input_tensor(index);
    if (tensor == nullptr) continue;  // a scalar keeps the program's value
    size_t size = 0;
    const void* value = one(tensor->dtype, &size);
    uint8_t* to = tensor->as<uint8_t>();
    for (size_t left = tensor->numel(); left > 0; --left, to += size) memcpy(to, value, size);
  }
  return Error::Ok;
}

}  // namespace armdeploy

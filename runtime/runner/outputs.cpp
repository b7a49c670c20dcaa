// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/outputs.h"

#include "runtime/core/format.h"
#include "runtime/runner/files.h"

namespace armdeploy {
namespace {

Error bytes_of(const EValue& value, size_t index, Span<const uint8_t>* out) {
  switch (value.tag) {
    case Tag::Tensor:
      *out = {value.t->as<const uint8_t>(), value.t->nbytes()};
      return Error::Ok;
    case Tag::Int:
    case Tag::Double:
      *out = {reinterpret_cast<const uint8_t*>(&value.i), sizeof value.i};
      return Error::Ok;
    case Tag::Bool:
      *out = {reinterpret_cast<const uint8_t*>(&value.b), sizeof value.b};
      return Error::Ok;
    default:
      return fail(Error::NotSupported, "output %zu is neither a tensor nor a number", index);
  }
}

}  // namespace

Error write_outputs(const Method& method, const char* base) {
  char path[256];
  for (size_t index = 0; index < method.output_count(); ++index) {
    Span<const uint8_t> bytes;
    if (Error error = bytes_of(method.output(index), index, &bytes); error != Error::Ok) return error;
    if (format_text(path, sizeof path, "%s-%zu.bin", base, index) == sizeof path - 1) {
      return fail(Error::AccessFailed, "%s: too long a name for an output", base);
    }
    if (Error error = files::write(path, bytes.data, bytes.size); error != Error::Ok) return error;
  }
  return Error::Ok;
}

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// A delegate for tests: reads every byte it is given; each byte of its output, the last argument, is the sum
// of the inputs' bytes at that place, of its blob, its compile specs' values and the named data of their
// keys. "SumBackend" for programs of the tests, "EthosUBackend" so that programs for the NPU load as well.
#include <cstring>

#include "runtime/core/backend.h"
#include "runtime/core/program.h"

namespace armdeploy {
namespace {

struct Handle {
  uint8_t sum;
  Span<const uint8_t> blob;
};

uint8_t sum_of(Span<const uint8_t> bytes) {
  uint8_t sum = 0;
  for (const uint8_t byte : bytes) sum = static_cast<uint8_t>(sum + byte);
  return sum;
}

Error init(BackendContext& context, Span<const uint8_t> blob, Span<const CompileSpec> specs, void** handle) {
  Handle* made = context.method.allocate_array<Handle>(1);
  uint8_t* scratch = context.temp.allocate_array<uint8_t>(64);
  if (!made || !scratch) return Error::MemoryAllocationFailed;
  std::memset(scratch, 0, 64);
  made->sum = sum_of(blob);
  made->blob = blob;
  for (const CompileSpec& spec : specs) {
    if (std::strlen(spec.key) == 0) return fail(Error::InvalidProgram, "compile spec without a key");
    made->sum =
        static_cast<uint8_t>(made->sum + sum_of(spec.value) + sum_of(context.program.named_data(spec.key)));
  }
  *handle = made;
  return Error::Ok;
}

uint8_t byte_at(const EValue& value, size_t index) {
  return value.is_tensor() && index < value.t->nbytes() ? value.t->as<const uint8_t>()[index] : uint8_t{0};
}

Error execute(BackendContext& context, void* handle, Span<EValue*> args) {
  const Handle& made = *static_cast<const Handle*>(handle);
  if (sum_of(made.blob) != sum_of(made.blob) || !context.temp.allocate(16)) return Error::Internal;
  if (args.empty() || !args[args.size - 1]->is_tensor() || args[args.size - 1]->t->constant) {
    return fail(Error::InvalidArgument, "the output is no mutable tensor");
  }
  Tensor& out = *args[args.size - 1]->t;
  const size_t size = out.nbytes();
  for (size_t k = 0; k < size; ++k) {
    uint8_t total = made.sum;
    for (size_t i = 0; i + 1 < args.size; ++i) total = static_cast<uint8_t>(total + byte_at(*args[i], k));
    out.as<uint8_t>()[k] = out.dtype == ScalarType::Bool ? total & 1 : total;
  }
  return Error::Ok;
}

}  // namespace

const Backend kBackends[] = {{"SumBackend", init, execute}, {"EthosUBackend", init, execute}};
const size_t kBackendCount = 2;

}  // namespace armdeploy

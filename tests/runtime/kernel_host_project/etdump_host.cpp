// SPDX-License-Identifier: Apache-2.0
// Runs a program's method "forward" on zeros and writes its ETDump:
//   etdump_host MODEL.pte OUT INFERENCES RECORD_BYTES [base64]
// The clock counts its own readings, so that every event has a start and an end of its own.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/core/method.h"
#include "runtime/etdump/etdump.h"

using namespace armdeploy;

namespace {

alignas(16) uint8_t model[1 << 20];
alignas(16) uint8_t pools[4][1 << 20];

uint64_t count_readings() {
  static uint64_t readings = 0;
  return readings++;
}

void put(void* file, const char* text, size_t size) {
  std::fwrite(text, 1, size, static_cast<FILE*>(file));
}

Error zero_inputs(Method& method) {
  for (size_t i = 0; i < method.input_count(); i++) {
    const Tensor* tensor = method.input_tensor(i);
    if (tensor == nullptr) return Error::NotSupported;
    std::memset(tensor->data, 0, tensor->nbytes());
  }
  return Error::Ok;
}

Error record(Span<const uint8_t> file, size_t inferences, EtDump& dump) {
  Program program;
  Error error = Program::load(file, &program);
  if (error != Error::Ok) return error;
  Arena method_arena(pools[0], sizeof pools[0], "method");
  Arena temp(pools[1], sizeof pools[1], "temp");
  Arena planned(pools[2], sizeof pools[2], "planned");
  Arena* ids[] = {&planned};
  MethodMemory memory;
  memory.method = &method_arena;
  memory.temp = &temp;
  memory.planned = {ids, 1};
  memory.events = dump.hook();
  Method method;
  error = Method::load(program, "forward", memory, &method);
  if (error == Error::Ok) error = zero_inputs(method);
  for (size_t i = 0; error == Error::Ok && i < inferences; i++) error = method.execute();
  return error;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  FILE* file = std::fopen(arguments[1], "rb");
  if (file == nullptr) return 3;
  const size_t size = std::fread(model, 1, sizeof model, file);
  Arena arena(pools[3], sizeof pools[3], "etdump");
  EtDump dump(arena, static_cast<size_t>(std::atol(arguments[4])), count_readings);
  if (record({model, size}, static_cast<size_t>(std::atol(arguments[3])), dump) != Error::Ok) return 5;
  Span<const uint8_t> bytes;
  FILE* out = std::fopen(arguments[2], "wb");
  if (out == nullptr || dump.finish(arena, &bytes) != Error::Ok) return 4;
  if (count > 5) {
    print_base64(bytes, put, out);
  } else {
    std::fwrite(bytes.data, 1, bytes.size, out);
  }
  std::printf("recorded %zu dropped %zu\n", dump.recorded(), dump.dropped());
  return std::fclose(out) == 0 ? 0 : 4;
}

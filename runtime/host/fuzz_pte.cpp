// SPDX-License-Identifier: Apache-2.0
// Any bytes as a program: loaded, and executed when it loads. Nothing may be read or written outside its
// buffers.
#include <cstdint>
#include <cstring>

#include "runtime/core/bundle.h"
#include "runtime/core/method.h"
#include "runtime/host/buffer.h"

namespace armdeploy::host {
namespace {

constexpr size_t kPool = size_t{64} << 10;
constexpr size_t kTemp = size_t{8} << 10;
constexpr uint64_t kBudget = 300;  // instructions: kernels may be slow
constexpr size_t kMethods = 4;

constexpr int kUnread = 0x5A;  // what no kernel should read before it writes

// A method's memory, as large as the program says: up to kPool, in up to two arenas.
class Memory {
 public:
  Memory(const Program& program, const char* name)
      : method_(arena_of(kPool, "method", kUnread, &buffers_[0])),
        temp_(arena_of(kTemp, "temp", kUnread, &buffers_[1])) {
    const size_t count = program.planned_count(name);
    for (size_t i = 0; i < count && i < 2; ++i) {
      const size_t wanted = program.planned_bytes(name, i);
      planned_[i] = arena_of(wanted < kPool ? wanted : kPool, "planned", kUnread, &buffers_[2 + i]);
    }
    parts_.method = &method_;
    parts_.temp = &temp_;
    parts_.planned = {pointers_, count < 2 ? count : 2};
  }

  const MethodMemory& parts() const { return parts_; }

 private:
  Buffer buffers_[4];
  Arena method_;
  Arena temp_;
  Arena planned_[2];
  Arena* pointers_[2] = {&planned_[0], &planned_[1]};
  MethodMemory parts_;
};

uint8_t sum(const void* bytes, size_t size) {
  uint8_t total = 0;
  for (size_t i = 0; i < size; ++i)
    total = static_cast<uint8_t>(total + static_cast<const uint8_t*>(bytes)[i]);
  return total;
}

uint8_t read_outputs(const Method& method) {
  uint8_t total = 0;
  for (size_t i = 0; i < method.output_count(); ++i) {
    const EValue& output = method.output(i);
    if (output.is_tensor() && output.t->data)
      total = static_cast<uint8_t>(total + sum(output.t->data, output.t->nbytes()));
  }
  return total;
}

Error run_cases(const Bundle* bundle, Method& method) {
  const size_t cases = bundle ? bundle->case_count(method.name()) : 0;
  for (size_t i = 0; i < cases && i < kMethods; ++i) {
    Bundle::Comparison result{};
    Error error = bundle->set_inputs(method, i);
    if (error == Error::Ok) error = method.execute(kBudget);
    if (error == Error::Ok) error = bundle->compare(method, i, 0, 0, &result);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

Error run_method(const Program& program, const char* name, const Bundle* bundle) {
  const Memory memory(program, name);
  Method method;
  Error error = Method::load(program, name, memory.parts(), &method);
  if (error != Error::Ok) return error;
  for (size_t i = 0; i < method.input_count(); ++i) {
    const Tensor* input = method.input_tensor(i);
    if (input) std::memset(input->data, 1, input->nbytes());
  }
  error = method.execute(kBudget);
  if (error == Error::Ok) error = method.execute(kBudget);
  static volatile uint8_t seen = 0;
  seen = static_cast<uint8_t>(seen + read_outputs(method));  // kept: nobody else reads the outputs
  return error == Error::Ok ? run_cases(bundle, method) : error;
}

Error run(Span<const uint8_t> file) {
  Bundle bundle;
  const bool bundled = Bundle::recognise(file);
  Error error = bundled ? Bundle::load(file, &bundle) : Error::Ok;
  if (error == Error::Ok && bundled) file = bundle.program();
  Program program;
  if (error == Error::Ok) error = Program::load(file, &program);
  if (error != Error::Ok) return error;
  for (size_t i = 0; i < program.method_count() && i < kMethods; ++i) {
    error = run_method(program, program.method_name(i), bundled ? &bundle : nullptr);
  }
  return error;
}

}  // namespace

// Formats every message, so that formatting is part of what is tried.
void ignore_line(Level, const char*, size_t) {}

Error run_bytes(const uint8_t* bytes, size_t size) {
  Buffer file;
  file.resize(size);
  if (size > 0) std::memcpy(file.bytes(), bytes, size);
  set_log_writer(ignore_line);
  return run(file.span());
}

}  // namespace armdeploy::host

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static_cast<void>(armdeploy::host::run_bytes(bytes, size));
  return 0;
}

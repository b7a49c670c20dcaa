// SPDX-License-Identifier: Apache-2.0
// Runs a program on the host: files in, files out.
#include <cstdio>
#include <cstring>

#include "runtime/core/bundle.h"
#include "runtime/core/format.h"
#include "runtime/core/method.h"
#include "runtime/host/files.h"
#include "runtime/host/options.h"

namespace armdeploy::host {
namespace {

constexpr int kOk = 0;
constexpr int kUsageExit = 2;
constexpr int kCannotLoad = 4;
constexpr int kFailed = 5;
constexpr double kTolerance = 0.01;  // ExecuTorch's default for bundled programs

void log_line(Level level, const char* line, size_t) {
  static const char kLetters[] = {'D', 'I', 'E'};
  std::fprintf(stderr, "%c %s\n", kLetters[static_cast<int>(level)], line);
}

void log_event(void*, const Event& event) {
  std::printf("event %d %s %u:%u %s\n", static_cast<int>(event.kind), event.begin ? "begin" : "end",
              event.chain, event.instruction, event.name);
}

int stop(Error error, int status) {
  std::fprintf(stderr, "E error 0x%x %s\n", static_cast<unsigned>(error), error_name(error));
  return status;
}

// The arenas of a method, each exactly as large as asked for; cleared, so that every run finds the same
// there.
class Memory {
 public:
  Memory(const Options& options, const Program& program)
      : method_(arena_of(options.method_pool, "method", 0, &buffers_[0])),
        temp_(arena_of(options.temp_pool, "temp", 0, &buffers_[1])) {
    for (size_t i = 0; i < options.planned_count; ++i) add(options.planned_pools[i]);
    const size_t count = options.planned_count > 0 ? 0 : program.planned_count(options.method);
    for (size_t i = 0; i < count && i < kMaxInputs; ++i) {
      const size_t wanted = program.planned_bytes(options.method, i);
      add(wanted < kMost ? wanted : 0);
    }
  }

  MethodMemory parts(bool events) {
    for (size_t i = 0; i < planned_count_; ++i) pointers_[i] = &planned_[i];
    MethodMemory parts;
    parts.method = &method_;
    parts.temp = &temp_;
    parts.planned = {pointers_, planned_count_};
    if (events) parts.events.on_event = log_event;
    return parts;
  }

  void print() const {
    std::printf("method_allocator_used: %zu / %zu\n", method_.used(), method_.size());
    std::printf("temp_allocator_peak: %zu / %zu\n", temp_.peak(), temp_.size());
    for (size_t i = 0; i < planned_count_; ++i) {
      std::printf("planned_memory_%zu: %zu / %zu\n", i + 1, planned_[i].used(), planned_[i].size());
    }
  }

 private:
  static constexpr size_t kMost = size_t{1} << 30;

  void add(size_t size) {
    planned_[planned_count_] = arena_of(size, "planned", 0, &buffers_[2 + planned_count_]);
    ++planned_count_;
  }

  Buffer buffers_[2 + kMaxInputs];
  Arena method_;
  Arena temp_;
  Arena planned_[kMaxInputs];
  Arena* pointers_[kMaxInputs] = {};
  size_t planned_count_ = 0;
};

Error set_input(const Input& input, size_t index, Method& method) {
  Buffer bytes;
  if (!read_file(input.path, &bytes)) return fail(Error::AccessFailed, "cannot read %s", input.path);
  const EValue& value = method.input(index);
  if (!input.shaped || !value.is_tensor()) return method.set_input(index, bytes.span());
  return method.set_input(index, value.t->dtype, {input.shape, input.rank}, bytes.span());
}

Error set_inputs(const Options& options, Method& method) {
  if (options.input_count != method.input_count()) {
    return fail(Error::InvalidArgument, "%zu input files, the method takes %zu", options.input_count,
                method.input_count());
  }
  for (size_t i = 0; i < options.input_count; ++i) {
    const Error error = set_input(options.inputs[i], i, method);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

Error write_output(const char* prefix, size_t index, const EValue& value) {
  char path[512];
  format_text(path, sizeof path, "%s-%zu.bin", prefix, index);
  const bool tensor = value.is_tensor();
  if (!tensor && !value.is_scalar())
    return fail(Error::NotSupported, "output %zu is neither tensor nor number", index);
  const size_t size = tensor ? value.t->nbytes() : value.tag == Tag::Bool ? 1 : 8;
  const void* bytes = tensor ? value.t->data : &value.i;
  return write_file(path, bytes, size) ? Error::Ok : fail(Error::AccessFailed, "cannot write %s", path);
}

void print_output(size_t index, const EValue& value) {
  std::printf("output %zu: tag %u", index, static_cast<unsigned>(value.tag));
  if (value.is_tensor()) {
    std::printf(" dtype %d shape", static_cast<int>(value.t->dtype));
    for (size_t i = 0; i < value.t->rank; ++i) std::printf(" %d", value.t->sizes[i]);
  }
  std::printf("\n");
}

Error write_outputs(const Options& options, const Method& method) {
  Error error = Error::Ok;
  for (size_t i = 0; error == Error::Ok && i < method.output_count(); ++i) {
    print_output(i, method.output(i));
    if (options.output) error = write_output(options.output, i, method.output(i));
  }
  return error;
}

// Every inference starts with the same inputs.
Error run_files(const Options& options, Method& method) {
  Error error = Error::Ok;
  for (size_t i = 0; error == Error::Ok && i < options.inferences; ++i) {
    error = set_inputs(options, method);
    if (error == Error::Ok) error = method.execute();
  }
  return error == Error::Ok ? write_outputs(options, method) : error;
}

Error run_bundle(const Bundle& bundle, Method& method, bool* pass) {
  Error error = Error::Ok;
  for (size_t i = 0; error == Error::Ok && i < bundle.case_count(method.name()); ++i) {
    Bundle::Comparison result{};
    error = bundle.set_inputs(method, i);
    if (error == Error::Ok) error = method.execute();
    if (error == Error::Ok) error = bundle.compare(method, i, kTolerance, kTolerance, &result);
    if (error != Error::Ok) break;
    std::printf("case %zu: %zu of %zu elements differ, at most by %g\n", i, result.mismatched,
                result.compared, result.largest);
    *pass = *pass && result.pass;
  }
  return error;
}

int run(const Options& options) {
  Buffer model;
  if (!read_file(options.model, &model))
    return std::fprintf(stderr, "E cannot read %s\n", options.model), kCannotLoad;
  Span<const uint8_t> file = model.span();
  Bundle bundle;
  const bool bundled = Bundle::recognise(file);
  Error error = bundled ? Bundle::load(file, &bundle) : Error::Ok;
  if (error == Error::Ok && bundled) file = bundle.program();
  Program program;
  if (error == Error::Ok) error = Program::load(file, &program);
  if (error != Error::Ok) return stop(error, kCannotLoad);
  Memory memory(options, program);
  Method method;
  error = Method::load(program, options.method, memory.parts(options.events), &method);
  if (error != Error::Ok) return stop(error, kCannotLoad);
  bool pass = true;
  const bool compare = bundled && options.input_count == 0;
  error = compare ? run_bundle(bundle, method, &pass) : run_files(options, method);
  if (error != Error::Ok) return stop(error, kFailed);
  if (compare) std::printf("Test_result: %s\n", pass ? "PASS" : "FAIL");
  memory.print();
  return pass ? kOk : kFailed;
}

}  // namespace
}  // namespace armdeploy::host

int main(int count, char** arguments) {
  using namespace armdeploy::host;
  Options options;
  if (count == 1 || (count == 2 && std::strcmp(arguments[1], "--help") == 0)) {
    std::fputs(kUsage, stdout);
    return count == 1 ? kUsageExit : kOk;
  }
  if (!parse(count, arguments, &options)) return kUsageExit;
  armdeploy::set_log_writer(log_line);
  return run(options);
}

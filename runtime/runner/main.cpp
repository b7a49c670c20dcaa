// SPDX-License-Identifier: Apache-2.0
// arm_executor_runner: loads a program, runs it, hands over its outputs.
#include <new>

#include "board_config.h"
#include "runtime/core/bundle.h"
#include "runtime/core/method.h"
#include "runtime/core/program.h"
#include "runtime/ethosu/driver.h"
#include "runtime/platform/clock.h"
#include "runtime/platform/console.h"
#include "runtime/platform/exit_status.h"
#include "runtime/platform/semihosting.h"
#include "runtime/runner/files.h"
#include "runtime/runner/inputs.h"
#include "runtime/runner/options.h"
#include "runtime/runner/outputs.h"
#include "runtime/runner/profile.h"
#include "runtime/runner/report.h"

extern "C" {
extern uint8_t __pool_file_start[], __pool_method_start[], __pool_temp_start[], __pool_fast_start[];
extern uint8_t __pool_file_size[], __pool_method_size[], __pool_temp_size[], __pool_fast_size[];
extern const uint8_t __model_start[], __model_end[];
}

namespace armdeploy {
namespace {

// A size that the linker script gives as the "address" of a symbol.
size_t size_of(const uint8_t* symbol) { return reinterpret_cast<size_t>(symbol); }

struct Pools {
  Arena file{__pool_file_start, size_of(__pool_file_size), "file"};
  Arena method{__pool_method_start, size_of(__pool_method_size), "method"};
  Arena temp{__pool_temp_start, size_of(__pool_temp_size), "temp"};
  Arena fast{__pool_fast_start, size_of(__pool_fast_size), "fast"};
};

// One run of the firmware.
struct Run {
  Options options;
  Pools pools;
  Span<const uint8_t> file;  // program or bundled program
  Span<const uint8_t> program_bytes;
  bool bundled = false;
  Bundle bundle;
  Program program;
  Method method;
  EtDump* etdump = nullptr;  // null: no profile is recorded
};

Error read_options(Options* options) {
  options->num_inferences = ARMDEPLOY_NUM_INFERENCES;
#if ARMDEPLOY_SEMIHOSTING
  static char command_line[512];
  if (!semihosting::command_line(command_line, sizeof command_line)) {
    return fail(Error::InvalidArgument, "command line: none, or longer than %zu bytes",
                sizeof command_line - 1);
  }
  return parse_options(command_line, options);
#else
  return Error::Ok;
#endif
}

// The program: from a file, in the firmware itself, or at an address that was filled from outside.
Error find_model(Run& run) {
#if ARMDEPLOY_SEMIHOSTING
  if (run.options.model != nullptr) return files::load(run.options.model, run.pools.file, &run.file);
#endif
  run.file = {__model_start, static_cast<size_t>(__model_end - __model_start)};
  if (run.file.empty()) return fail(Error::InvalidArgument, "command line: no program; give -m FILE");
  return Error::Ok;
}

Error load_program(Run& run) {
  run.program_bytes = run.file;
  run.bundled = Bundle::recognise(run.file);
  if (run.options.bundle && !run.bundled)
    return fail(Error::InvalidArgument, "--bundle: the file is no bundled program");
  if (run.bundled) {
    if (Error error = Bundle::load(run.file, &run.bundle); error != Error::Ok) return error;
    run.program_bytes = run.bundle.program();
  }
  report(Level::Info, "PTE in %p Size: %zu bytes", static_cast<const void*>(run.program_bytes.data),
         run.program_bytes.size);
  if (Error error = Program::load(run.program_bytes, &run.program); error != Error::Ok) return error;
  if (run.program.method_count() == 0) return fail(Error::InvalidProgram, "the program has no method");
  report(Level::Info, "Model buffer loaded, has %zu methods", run.program.method_count());
  return Error::Ok;
}

// Records an ETDump when somebody asks for it: --etdump, or a firmware for the UART that is built with it.
Error prepare_profile(Run& run) {
  if (run.options.etdump == nullptr && ARMDEPLOY_SEMIHOSTING) return Error::Ok;
#if ARMDEPLOY_ETDUMP
  run.etdump = start_profile(run.pools.file);
  return run.etdump == nullptr ? Error::MemoryAllocationFailed : Error::Ok;
#else
  if (run.options.etdump == nullptr) return Error::Ok;
  return fail(Error::NotSupported, "--etdump: this firmware is built without EXECUTORCH_ENABLE_EVENT_TRACER");
#endif
}

Error load_method(Run& run) {
  Pools& pools = run.pools;
  MethodMemory memory;
  memory.method = &pools.method;
  memory.temp = &pools.temp;
  memory.fast = pools.fast.size() != 0 ? &pools.fast : nullptr;
#if ARMDEPLOY_ETDUMP
  if (run.etdump != nullptr) memory.events = run.etdump->hook();
#endif
  const char* name = run.options.method != nullptr ? run.options.method : run.program.method_name(0);
  if (Error error = Method::load(run.program, name, memory, &run.method); error != Error::Ok) return error;
  report(Level::Info, "Method '%s' loaded.", run.method.name());
  return Error::Ok;
}

size_t planned_bytes(const Run& run) {
  size_t total = 0;
  for (size_t id = 0; id < run.program.planned_count(run.method.name()); ++id) {
    total += run.program.planned_bytes(run.method.name(), id);
  }
  return total;
}

Error set_inputs(Run& run) {
  if (run.bundled) return run.bundle.set_inputs(run.method, 0);
#if ARMDEPLOY_SEMIHOSTING
  return read_inputs(run.method, run.options);
#else
  return fill_inputs_with_ones(run.method);
#endif
}

// All inferences; `cycles`: CPU cycles inside execute.
Error infer(Run& run, uint32_t* cycles) {
  const uint32_t count = run.options.num_inferences;
  report(Level::Info, "Starting running %u inferences...", static_cast<unsigned>(count));
  for (uint32_t done = 0; done < count; ++done) {
    // Planned memory of an input may be reused once it was read, so every inference gets its inputs anew.
    if (Error error = set_inputs(run); error != Error::Ok) return error;
    console::flush();  // whoever watches sees where it is
    const uint32_t started = cycle_count();
    const Error error = run.method.execute();
    *cycles += cycle_count() - started;
    if (error != Error::Ok) return error;
  }
  report(Level::Info, "Model executed successfully.");
  return Error::Ok;
}

// Compares with every expected output of the bundled program's first test case.
Error compare_with_bundle(const Run& run, bool* pass) {
  Bundle::Comparison result;
  Error error = run.bundle.compare(run.method, 0, ARMDEPLOY_RTOL, ARMDEPLOY_ATOL, &result);
  if (error != Error::Ok) return error;
  *pass = result.pass;
  report(Level::Info, "compared %zu elements with the bundled outputs: %zu differ, by %f at most",
         result.compared, result.mismatched, result.largest);
  console::print(result.pass ? "Test_result: PASS" : "Test_result: FAIL");
  return Error::Ok;
}

Error deliver(Run& run, bool* pass) {
  report(Level::Info, "%zu outputs:", run.method.output_count());
#if ARMDEPLOY_SEMIHOSTING
  if (Error error = write_outputs(run.method, run.options.output); error != Error::Ok) return error;
#endif
#if ARMDEPLOY_LOG_OUTPUT
  report_outputs(run.method);
#endif
#if ARMDEPLOY_ETDUMP
  if (run.etdump != nullptr) {
    Error error = deliver_profile(*run.etdump, run.pools.file, run.options.etdump);
    if (error != Error::Ok) return error;
  }
#endif
  return run.bundled ? compare_with_bundle(run, pass) : Error::Ok;
}

Error execute(Run& run, bool* pass) {
  if (Error error = read_options(&run.options); error != Error::Ok) return error;
  report(Level::Info, "%s, %s", board::kName, board::kMemoryMode);
  if (Error error = find_model(run); error != Error::Ok) return error;
  if (Error error = load_program(run); error != Error::Ok) return error;
  if (Error error = prepare_profile(run); error != Error::Ok) return error;
  if (Error error = load_method(run); error != Error::Ok) return error;
  if (run.etdump == nullptr) start_cycle_counter();
  uint32_t cycles = 0;
  if (Error error = infer(run, &cycles); error != Error::Ok) return error;
  const Pools& pools = run.pools;
  report_memory({run.program_bytes.size, pools.file.used() != 0 ? run.file.size : 0, planned_bytes(run),
                 &pools.file, &pools.method, &pools.temp});
  report_performance(run.options.num_inferences, cycles);
  return deliver(run, pass);
}

// Made in main: as a plain global it would need a static constructor.
alignas(Run) uint8_t run_storage[sizeof(Run)];

}  // namespace
}  // namespace armdeploy

int main() {
  using namespace armdeploy;
  console::start();
  Run& run = *new (run_storage) Run();
  bool pass = true;
  const Error error = execute(run, &pass);
  uint32_t status = exit_status::of(error);
  if (error != Error::Ok) {
    report(Level::Error, "Program failed: %s (0x%02x)", error_name(error), static_cast<unsigned>(error));
  } else if (!pass) {
    status = exit_status::kWrongOutput;
    report(Level::Error, "Program failed: the outputs are not the bundled ones");
  } else {
    report(Level::Info, "Program complete, exiting.");
  }
  console::printf("run %s ended with exit status %u", run.options.run_id, static_cast<unsigned>(status));
  console::end_run(status);
}

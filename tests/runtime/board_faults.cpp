// SPDX-License-Identifier: Apache-2.0
// Firmware that does what its command line says and faults by it; for tests of the fault handler.
#include <cstring>

#include "runtime/core/error.h"
#include "runtime/platform/console.h"
#include "runtime/platform/interrupts.h"
#include "runtime/platform/semihosting.h"

extern "C" void npu_interrupt() {}

namespace {

void do_fault(const char* what) {
  if (strcmp(what, "read") == 0) {
    static_cast<void>(*reinterpret_cast<volatile int*>(0x44440008));
  } else if (strcmp(what, "write") == 0) {
    *reinterpret_cast<volatile int*>(0x44440010) = 1;
  } else if (strcmp(what, "undefined") == 0) {
    asm volatile("udf #1");
  } else if (strcmp(what, "branch") == 0) {
    reinterpret_cast<void (*)()>(0x44440001)();
  } else if (strcmp(what, "interrupt") == 0) {
    asm volatile("svc #0");
  }
}

}  // namespace

int main() {
  char line[32];
  armdeploy::console::start();
  if (armdeploy::semihosting::command_line(line, sizeof line)) do_fault(line);
  armdeploy::report(armdeploy::Level::Info, "nothing happened");
  armdeploy::console::end_run(0);
}

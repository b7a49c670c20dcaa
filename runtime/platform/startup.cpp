// SPDX-License-Identifier: Apache-2.0
// Vector table and reset: from the first instruction to main() with initialised data and a guarded stack.
#include <cstddef>
#include <cstdint>

#include "board_config.h"
#include "runtime/platform/cache.h"
#include "runtime/platform/fault.h"
#include "runtime/platform/interrupts.h"
#include "runtime/platform/system_control.h"

int main();

extern "C" {
extern uint32_t __data_load[], __data_start[], __data_end[], __bss_start[], __bss_end[];
extern uint32_t __stack_limit[], __stack_top[];
[[noreturn]] void Reset_Handler();
}

namespace armdeploy {
namespace {

using Handler = void (*)();

constexpr size_t kSystemExceptions = 16;

struct VectorTable {
  uint32_t* stack;
  Handler handlers[kSystemExceptions - 1 + board::kNpuIrq + 1];
};

// Everything that is not expected ends in the fault handler, which names the exception.
constexpr VectorTable make_table() {
  VectorTable table{__stack_top, {}};
  for (Handler& handler : table.handlers) {
    handler = fault_entry;
  }
  table.handlers[0] = Reset_Handler;
  table.handlers[kSystemExceptions - 1 + board::kNpuIrq] = npu_interrupt;
  return table;
}

void initialise_memory() {
  const uint32_t* from = __data_load;
  for (uint32_t* to = __data_start; to < __data_end; ++to, ++from) {
    *to = *from;
  }
  for (uint32_t* word = __bss_start; word < __bss_end; ++word) {
    *word = 0;
  }
}

void configure_core(const void* vectors) {
  scs::reg(scs::kVectorTable) = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(vectors));
#if __ARM_ARCH >= 7
  scs::reg(scs::kSystemHandlerControl) = scs::kEnableFaults;
  scs::reg(scs::kConfigurationControl) = scs::reg(scs::kConfigurationControl) | scs::kTrapDivideByZero;
#endif
  enable_caches();
}

}  // namespace
}  // namespace armdeploy

// CMSIS' name, by which debuggers and simulators find the table.
extern "C" [[gnu::section(".vectors")]] const armdeploy::VectorTable __Vectors;
constexpr armdeploy::VectorTable __Vectors = armdeploy::make_table();

// The coprocessor access comes first: the compiler may use floating-point or vector registers in any
// function.
extern "C" [[gnu::naked]] void Reset_Handler() {
  asm volatile(
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
      "ldr r0, =0xE000ED88 \n"
      "ldr r1, =0x00F00000 \n"
      "str r1, [r0]        \n"
      "dsb                 \n"
      "isb                 \n"
#endif
#if __ARM_ARCH >= 8
      "ldr r0, =__stack_limit \n"
      "msr msplim, r0      \n"
#endif
      "bl start_program    \n");
}

extern "C" [[noreturn, gnu::used]] void start_program() {
  armdeploy::initialise_memory();
  armdeploy::configure_core(&__Vectors);
  main();
  for (;;) {
  }
}

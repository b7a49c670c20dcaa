// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform/fault.h"

#include <cstddef>
#include <cstdint>

#include "board_config.h"
#include "runtime/core/error.h"
#include "runtime/platform/console.h"
#include "runtime/platform/exit_status.h"
#include "runtime/platform/system_control.h"

namespace armdeploy {
namespace {

struct Cause {
  uint32_t bit;
  const char* text;
};

// Bits of CFSR: MemManage 7:0, BusFault 15:8, UsageFault 31:16.
constexpr Cause kCauses[] = {
    {1u << 20, "stack overflow"},
    {1u << 0, "instruction fetch from a forbidden address"},
    {1u << 1, "data access to a forbidden address"},
    {1u << 3, "memory fault while leaving an exception"},
    {1u << 4, "memory fault while entering an exception"},
    {1u << 5, "memory fault while saving floating-point state"},
    {1u << 8, "bus fault at an instruction fetch"},
    {1u << 9, "bus fault at a data access"},
    {1u << 10, "bus fault at an earlier data access"},
    {1u << 11, "bus fault while leaving an exception"},
    {1u << 12, "bus fault while entering an exception"},
    {1u << 13, "bus fault while saving floating-point state"},
    {1u << 16, "undefined instruction"},
    {1u << 17, "invalid instruction set state"},
    {1u << 18, "invalid exception return"},
    {1u << 19, "no such coprocessor"},
    {1u << 24, "unaligned access"},
    {1u << 25, "division by zero"},
};
constexpr uint32_t kMemManageAddressValid = 1u << 7, kBusFaultAddressValid = 1u << 15;
constexpr uint32_t kVectorTableRead = 1u << 1;  // HFSR

constexpr const char* kExceptions[] = {"thread mode", "reset",    "NMI",        "HardFault",
                                       "MemManage",   "BusFault", "UsageFault", "SecureFault"};

struct Frame {
  uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};
constexpr uint32_t kFrameBytes = 0x20, kExtendedFrameBytes = 0x68;
constexpr uint32_t kStandardFrame = 1u << 4;  // EXC_RETURN: no floating-point context on the stack
constexpr uint32_t kStackAligned = 1u << 9;   // xPSR: four bytes were skipped

unsigned number(uint32_t value) { return static_cast<unsigned>(value); }

uint32_t exception_number() {
  uint32_t ipsr;
  asm volatile("mrs %0, ipsr" : "=r"(ipsr));
  return ipsr & 0x1FF;
}

const char* cause_text(uint32_t cfsr, uint32_t hfsr) {
  for (const Cause& cause : kCauses) {
    if ((cfsr & cause.bit) != 0) return cause.text;
  }
  return (hfsr & kVectorTableRead) != 0 ? "bus fault at the vector table" : "unexpected exception";
}

void report_cause(const Frame& frame) {
#if __ARM_ARCH_PROFILE == 'M' && __ARM_ARCH >= 7 && !defined(__ARM_ARCH_8M_BASE__)
  const uint32_t cfsr = scs::reg(scs::kConfigurableFaultStatus);
  const uint32_t hfsr = scs::reg(scs::kHardFaultStatus);
  const uint32_t bfar = scs::reg(scs::kBusFaultAddress), mmfar = scs::reg(scs::kMemManageAddress);
#else
  const uint32_t cfsr = 0, hfsr = 0, bfar = 0, mmfar = 0;
#endif
  const uint32_t exception = exception_number();
  report(Level::Error, "Hard fault: %s at pc %08x", cause_text(cfsr, hfsr), number(frame.pc));
  if ((cfsr & kBusFaultAddressValid) != 0) report(Level::Error, "the address is %08x", number(bfar));
  if ((cfsr & kMemManageAddressValid) != 0) report(Level::Error, "the address is %08x", number(mmfar));
  if (exception < sizeof kExceptions / sizeof *kExceptions) {
    report(Level::Error, "exception %u (%s)", number(exception), kExceptions[exception]);
  } else {
    report(Level::Error, "exception %u (interrupt %u)", number(exception), number(exception - 16));
  }
  report(Level::Error, "CFSR %08x HFSR %08x MMFAR %08x BFAR %08x", number(cfsr), number(hfsr), number(mmfar),
         number(bfar));
}

uint32_t stack_before(const Frame& frame, uint32_t exc_return) {
  const uint32_t bytes = (exc_return & kStandardFrame) != 0 ? kFrameBytes : kExtendedFrameBytes;
  const uint32_t skipped = (frame.xpsr & kStackAligned) != 0 ? 4 : 0;
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&frame)) + bytes + skipped;
}

// `high` is r8-r11, then r4-r7, as fault_entry saved them.
void report_registers(const Frame& frame, const uint32_t* high, uint32_t exc_return) {
  report(Level::Error, "r0 %08x r1 %08x r2 %08x r3 %08x r4 %08x r5 %08x r6 %08x", number(frame.r0),
         number(frame.r1), number(frame.r2), number(frame.r3), number(high[4]), number(high[5]),
         number(high[6]));
  report(Level::Error, "r7 %08x r8 %08x r9 %08x r10 %08x r11 %08x r12 %08x", number(high[7]), number(high[0]),
         number(high[1]), number(high[2]), number(high[3]), number(frame.r12));
  report(Level::Error, "sp %08x lr %08x pc %08x xpsr %08x exc_return %08x",
         number(stack_before(frame, exc_return)), number(frame.lr), number(frame.pc), number(frame.xpsr),
         number(exc_return));
}

}  // namespace

extern "C" [[noreturn, gnu::used]] void fault_report(const Frame* frame, uint32_t exc_return,
                                                     const uint32_t* high) {
  report_cause(*frame);
  report_registers(*frame, high, exc_return);
  console::end_run(exit_status::kInternal);
}

}  // namespace armdeploy

// A stack that has overflowed has no room for the report: then the report takes the stack from its top again.
extern "C" [[gnu::naked]] void fault_entry() {
  asm volatile(
      "mov  r0, sp          \n"
      "mov  r1, lr          \n"
#if __ARM_ARCH >= 8
      "movs r2, #0          \n"
      "msr  msplim, r2      \n"
#endif
      "ldr  r3, =__stack_limit + 1024 \n"
      "cmp  r0, r3          \n"
      "bhs  1f              \n"
      "ldr  r3, =__stack_top \n"
      "mov  sp, r3          \n"
      "1:                   \n"
      "push {r4-r7}         \n"
      "mov  r4, r8          \n"
      "mov  r5, r9          \n"
      "mov  r6, r10         \n"
      "mov  r7, r11         \n"
      "push {r4-r7}         \n"
      "mov  r2, sp          \n"
      "bl   fault_report    \n");
}

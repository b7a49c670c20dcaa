// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform/console.h"

#include <cstdarg>
#include <cstring>

#include "board_config.h"
#include "runtime/core/error.h"
#include "runtime/core/format.h"
#include "runtime/platform/semihosting.h"

#if !ARMDEPLOY_SEMIHOSTING
// CMSDK UART (Arm Cortex-M System Design Kit, 4.3).
namespace {

constexpr uintptr_t kData = 0x00, kState = 0x04, kControl = 0x08, kBaudDivider = 0x10;
constexpr uint32_t kTransmitterFull = 1, kTransmitterEnable = 1;
constexpr uint32_t kBaudRate = 115200;
constexpr char kEndOfTransmission = 0x04;

volatile uint32_t& uart(uintptr_t offset) {
  return *reinterpret_cast<volatile uint32_t*>(armdeploy::board::kUart0 + offset);
}

void put(char character) {
  while ((uart(kState) & kTransmitterFull) != 0) {
  }
  uart(kData) = static_cast<uint8_t>(character);
}

}  // namespace

// The C library's name for low-level output, which debuggers and simulators know.
extern "C" [[gnu::noinline, gnu::used]] int _write(int, const char* text, int length) {
  for (int index = 0; index < length; ++index) put(text[index]);
  return length;
}
#endif

namespace armdeploy::console {
namespace {

constexpr const char* kTag = " [executorch:arm_executor_runner] ";
constexpr size_t kTagLength = 35;  // with the level's letter

constexpr size_t kLine = kTagLength + kLogLine;

// Every call to the host stops a simulated CPU, so that lines are kept until there is this much of them.
constexpr size_t kKept = ARMDEPLOY_SEMIHOSTING ? 1024 : 0;

char buffer[kKept + kLine + 2];
size_t kept = 0;

// The line being made goes behind those that are kept.
char* line() { return buffer + kept; }

void end_line(size_t length) {
  kept += length;
  buffer[kept++] = '\n';
  if (kept > kKept) flush();
}

void write_log(Level level, const char* text, size_t length) {
  static_assert(__builtin_strlen(kTag) + 1 == kTagLength, "a letter and the tag");
  char* place = line();
  place[0] = "DIE"[static_cast<size_t>(level)];
  memcpy(place + 1, kTag, kTagLength - 1);
  const size_t fitting = length < kLogLine ? length : kLogLine;
  memcpy(place + kTagLength, text, fitting);
  end_line(kTagLength + fitting);
}

}  // namespace

void start() {
#if !ARMDEPLOY_SEMIHOSTING
  uart(kBaudDivider) = board::kClockHz / kBaudRate;
  uart(kControl) = kTransmitterEnable;
#endif
  set_log_writer(write_log);
}

void print(const char* text) {
  const size_t length = strlen(text);
  const size_t fitting = length < kLine ? length : kLine;
  memcpy(line(), text, fitting);
  end_line(fitting);
}

void printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  end_line(format_text(line(), kLine + 1, format, arguments));
  va_end(arguments);
}

void flush() {
  if (kept == 0) return;
  buffer[kept] = '\0';
#if ARMDEPLOY_SEMIHOSTING
  semihosting::print(buffer);
#else
  _write(1, buffer, static_cast<int>(kept));
#endif
  kept = 0;
}

void end_run(uint32_t status) {
  flush();
#if ARMDEPLOY_SEMIHOSTING
  semihosting::exit(status);
#else
  static_cast<void>(status);  // the log's last line says it
  put(kEndOfTransmission);
  for (;;) {
    asm volatile("wfi");
  }
#endif
}

}  // namespace armdeploy::console

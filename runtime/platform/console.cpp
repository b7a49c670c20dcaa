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

char buffer[kTagLength + kLogLine + 2];

// Sends buffer[0..length) and a newline, in one piece.
void send(size_t length) {
  buffer[length] = '\n';
  buffer[length + 1] = '\0';
#if ARMDEPLOY_SEMIHOSTING
  semihosting::print(buffer);
#else
  _write(1, buffer, static_cast<int>(length) + 1);
#endif
}

size_t fit(size_t length) { return length < sizeof buffer - 2 ? length : sizeof buffer - 2; }

void write_log(Level level, const char* line, size_t length) {
  static_assert(__builtin_strlen(kTag) + 1 == kTagLength, "a letter and the tag");
  buffer[0] = "DIE"[static_cast<size_t>(level)];
  memcpy(buffer + 1, kTag, kTagLength - 1);
  const size_t kept = length < kLogLine ? length : kLogLine;
  memcpy(buffer + kTagLength, line, kept);
  send(kTagLength + kept);
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
  const size_t length = fit(strlen(text));
  memcpy(buffer, text, length);
  send(length);
}

void printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  send(format_text(buffer, sizeof buffer - 1, format, arguments));
  va_end(arguments);
}

void end_run(uint32_t status) {
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

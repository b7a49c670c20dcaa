// SPDX-License-Identifier: Apache-2.0
// The console (semihosting or UART) and the end of the run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace armdeploy::console {

// Makes the log write to the console: "I [executorch:arm_executor_runner] text".
void start();

// Writes a line as it is. `text` is zero-terminated and holds no newline.
void print(const char* text);
void printf(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Hands over the lines kept so far (semihosting: one call to the host for many). To be called before what takes long.
void flush();

// Ends the run: exit status to the host through semihosting, an end-of-transmission byte through the UART.
[[noreturn]] void end_run(uint32_t status);

}  // namespace armdeploy::console

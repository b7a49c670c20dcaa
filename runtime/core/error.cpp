// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/error.h"

#include <cstdarg>

#include "runtime/core/format.h"

namespace armdeploy {
namespace {

LogWriter log_writer = nullptr;

void write_line(Level level, const char* format, va_list arguments) {
  if (!log_writer) return;
  char line[kLogLine + 1];
  const size_t length = format_text(line, sizeof line, format, arguments);
  log_writer(level, line, length);
}

}  // namespace

const char* error_name(Error error) {
  switch (error) {
#define X(name, code) \
  case Error::name: return #name;
    ARMDEPLOY_ERRORS(X)
#undef X
  }
  return "unknown error";
}

void set_log_writer(LogWriter writer) { log_writer = writer; }

void report(Level level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(level, format, arguments);
  va_end(arguments);
}

Error fail(Error error, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(Level::Error, format, arguments);
  va_end(arguments);
  return error;
}

}  // namespace armdeploy

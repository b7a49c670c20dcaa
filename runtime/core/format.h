// SPDX-License-Identifier: Apache-2.0
// A printf subset that needs no heap and no C library.
#pragma once

#include <cstdarg>
#include <cstddef>

namespace armdeploy {

// Conversions: %s %c %d %i %u %x %p %f %%, flags '0' '-', width (number or *), precision (of %s and %f;
// number or *), lengths l ll z. %f prints at most 9 decimals, rounds half up, and values of 2^63 or more as
// "big". Writes at most `size` - 1 characters and a terminator (`size` >= 1); returns the count written,
// without it.
size_t format_text(char* text, size_t size, const char* format, va_list arguments);
size_t format_text(char* text, size_t size, const char* format, ...) __attribute__((format(printf, 3, 4)));

}  // namespace armdeploy

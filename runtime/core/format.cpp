// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/format.h"

#include <cstdint>

namespace armdeploy {
namespace {

// Collects text; what does not fit is dropped.
class Text {
 public:
  Text(char* text, size_t size) : text_(text), room_(size - 1) {}

  void put(char c) {
    if (used_ < room_) text_[used_++] = c;
  }
  void repeat(char c, int count) {
    for (; count > 0; --count) put(c);
  }
  size_t finish() {
    text_[used_] = 0;
    return used_;
  }

 private:
  char* text_;
  size_t room_;
  size_t used_ = 0;
};

struct Spec {
  bool left = false;
  bool zeros = false;
  int width = 0;
  int precision = -1;
  int longs = 0;  // 1: l or z, 2: ll
};

// Digits of a number, least significant first; the sign is kept apart so that zeros go between.
struct Digits {
  char text[34];
  int count = 0;
  char sign = 0;

  void push(char c) { text[count++] = c; }
};

// Divides in place by a small number, in 16-bit steps: a 64-bit division would pull in a library routine.
unsigned divide(uint64_t& value, unsigned by) {
  unsigned rest = 0;
  uint64_t quotient = 0;
  for (int shift = 48; shift >= 0; shift -= 16) {
    const unsigned part = (rest << 16) | (static_cast<unsigned>(value >> shift) & 0xFFFFU);
    quotient = (quotient << 16) | (part / by);
    rest = part % by;
  }
  value = quotient;
  return rest;
}

void push_number(Digits& digits, uint64_t value, unsigned base, int least) {
  for (; value != 0 || least > 0; --least) digits.push("0123456789abcdef"[divide(value, base)]);
}

void put_digits(Text& text, const Digits& digits, const Spec& spec) {
  const int pad = spec.width - digits.count - (digits.sign ? 1 : 0);
  if (!spec.left && !spec.zeros) text.repeat(' ', pad);
  if (digits.sign) text.put(digits.sign);
  if (!spec.left && spec.zeros) text.repeat('0', pad);
  for (int i = digits.count; i > 0; --i) text.put(digits.text[i - 1]);
  if (spec.left) text.repeat(' ', pad);
}

void put_string(Text& text, const char* string, const Spec& spec) {
  int length = 0;
  while ((spec.precision < 0 || length < spec.precision) && string[length]) ++length;
  if (!spec.left) text.repeat(' ', spec.width - length);
  for (int i = 0; i < length; ++i) text.put(string[i]);
  if (spec.left) text.repeat(' ', spec.width - length);
}

void put_double(Text& text, double value, const Spec& spec) {
  const double limit = 9223372036854775808.0;
  if (!(value > -limit && value < limit)) return put_string(text, value == value ? "big" : "nan", spec);
  const int decimals = spec.precision < 0 ? 6 : spec.precision > 9 ? 9 : spec.precision;
  uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  Digits digits;
  if (value < 0) {
    digits.sign = '-';
    value = -value;
  }
  uint64_t whole = static_cast<uint64_t>(value);
  uint64_t part =
      static_cast<uint64_t>((value - static_cast<double>(whole)) * static_cast<double>(scale) + 0.5);
  if (part >= scale) {
    part -= scale;
    ++whole;
  }
  if (decimals > 0) {
    push_number(digits, part, 10, decimals);
    digits.push('.');
  }
  push_number(digits, whole, 10, 1);
  put_digits(text, digits, spec);
}

uint64_t take_unsigned(va_list* arguments, int longs) {
  if (longs == 2) return va_arg(*arguments, unsigned long long);
  if (longs == 1) return va_arg(*arguments, unsigned long);
  return va_arg(*arguments, unsigned);
}

int64_t take_signed(va_list* arguments, int longs) {
  if (longs == 2) return va_arg(*arguments, long long);
  if (longs == 1) return va_arg(*arguments, long);
  return va_arg(*arguments, int);
}

int take_count(const char*& format, va_list* arguments) {
  if (*format == '*') {
    ++format;
    return va_arg(*arguments, int);
  }
  int value = 0;
  for (; *format >= '0' && *format <= '9'; ++format) value = value * 10 + (*format - '0');
  return value;
}

Spec take_spec(const char*& format, va_list* arguments) {
  Spec spec;
  for (;; ++format) {
    if (*format == '-')
      spec.left = true;
    else if (*format == '0')
      spec.zeros = true;
    else
      break;
  }
  spec.width = take_count(format, arguments);
  if (*format == '.') spec.precision = take_count(++format, arguments);
  for (; *format == 'l' || *format == 'z'; ++format) ++spec.longs;
  return spec;
}

void put_conversion(Text& text, char conversion, const Spec& spec, va_list* arguments) {
  Digits digits;
  switch (conversion) {
    case 's': {
      const char* string = va_arg(*arguments, const char*);
      return put_string(text, string ? string : "(null)", spec);
    }
    case 'f': return put_double(text, va_arg(*arguments, double), spec);
    case 'c': return text.put(static_cast<char>(va_arg(*arguments, int)));
    case 'p': push_number(digits, reinterpret_cast<uintptr_t>(va_arg(*arguments, void*)), 16, 8); break;
    case 'd':
    case 'i': {
      const int64_t value = take_signed(arguments, spec.longs);
      if (value < 0) digits.sign = '-';
      push_number(digits, value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value), 10, 1);
      break;
    }
    case 'u':
    case 'x':
      push_number(digits, take_unsigned(arguments, spec.longs), conversion == 'x' ? 16 : 10, 1);
      break;
    default: return text.put(conversion);
  }
  put_digits(text, digits, spec);
}

// A va_list that can be handed on by pointer (an array type decays in parameters).
struct Arguments {
  va_list list;
};

}  // namespace

size_t format_text(char* out, size_t size, const char* format, va_list arguments) {
  Text text(out, size);
  Arguments rest;
  va_copy(rest.list, arguments);
  while (*format) {
    const char c = *format++;
    if (c != '%') {
      text.put(c);
      continue;
    }
    const Spec spec = take_spec(format, &rest.list);
    if (*format) put_conversion(text, *format++, spec, &rest.list);
  }
  va_end(rest.list);
  return text.finish();
}

size_t format_text(char* text, size_t size, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const size_t length = format_text(text, size, format, arguments);
  va_end(arguments);
  return length;
}

}  // namespace armdeploy

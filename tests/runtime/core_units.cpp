// SPDX-License-Identifier: Apache-2.0
// What the small parts of the core do, printed line by line for test_core_units.py.
#include <cstdint>
#include <cstdio>

#include "runtime/core/arena.h"
#include "runtime/core/error.h"
#include "runtime/core/format.h"
#include "runtime/core/tensor.h"

using namespace armdeploy;

namespace {

void log_line(Level, const char* line, size_t) { std::printf("log %s\n", line); }

template <class... Values>
void format(const char* form, Values... values) {
  char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
  const size_t length = format_text(text, sizeof text, form, values...);
#pragma GCC diagnostic pop
  std::printf("format\t%s\t%s\t%zu\n", form, text, length);
}

void formats() {
  format("%d", -2147483647 - 1);
  format("%5d|%-5d|%05d", 42, 42, -42);
  format("%lld", static_cast<long long>(INT64_MIN));
  format("%llu", static_cast<unsigned long long>(UINT64_MAX));
  format("%08x", 0xBEEFU);
  format("%zu", SIZE_MAX);
  format("%s|%6s|%-6s|%.2s", "abc", "abc", "abc", "abc");
  format("%c%%", 'x');
  format("%f", 3.14159265);
  format("%.0f|%.1f|%.3f", 2.5, -0.05, 1999.9996);
  format("%8.2f|%-8.2f|%08.2f", 3.14159, 3.14159, -3.14159);
  format("%*d|%.*s", 6, 7, 2, "xyz");
  format("%s", "a text that is longer than the sixty-three characters there is room for");
}

void arenas() {
  alignas(16) static uint8_t memory[100];
  Arena arena(memory + 1, 99, "small");
  const auto offset = [](void* at) { return at ? static_cast<long>(static_cast<uint8_t*>(at) - memory) : -1L; };
  const long first = offset(arena.allocate(1));
  const long second = offset(arena.allocate(4, 4));
  const Arena::Mark mark = arena.mark();
  const long third = offset(arena.allocate(50));
  std::printf("arena %ld %ld %ld %zu", first, second, third, arena.used());
  arena.release(mark);
  std::printf(" %zu %zu\n", arena.used(), arena.peak());
  std::printf("arena %ld\n", offset(arena.allocate(69)));
  std::printf("arena %ld\n", offset(arena.allocate(68)));
  std::printf("arena %ld\n", offset(arena.allocate_array<uint64_t>(SIZE_MAX / 4)));
}

void tensors() {
  int32_t sizes[] = {2, 3, 4, 5};
  const uint8_t channels_last[] = {0, 2, 3, 1};
  Tensor tensor{nullptr, sizes, channels_last, sizes, 480, 4, ScalarType::Float, Dynamism::Bounded, false};
  size_t strides[4];
  tensor.strides(strides);
  std::printf("tensor %zu %zu %d strides %zu %zu %zu %zu\n", tensor.numel(), tensor.nbytes(), tensor.contiguous(),
              strides[0], strides[1], strides[2], strides[3]);
  static const int32_t kBatches[] = {1, 3, -1, INT32_MAX};
  for (const int32_t batch : kBatches) {
    const int32_t wanted[] = {batch, 3, 4, 5};
    const Error error = tensor.resize(wanted, 4);
    std::printf("resize %d %s %zu\n", static_cast<int>(batch), error_name(error), tensor.nbytes());
  }
}

}  // namespace

int main() {
  set_log_writer(log_line);
  formats();
  arenas();
  tensors();
  std::printf("error %s %s\n", error_name(Error::InvalidProgram), error_name(static_cast<Error>(0x99)));
}

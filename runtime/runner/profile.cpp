// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/profile.h"

#if ARMDEPLOY_ETDUMP

#include <cstring>
#include <new>

#include "runtime/platform/clock.h"
#include "runtime/platform/console.h"
#include "runtime/runner/files.h"

namespace armdeploy {
namespace {

constexpr size_t kRecordBytes = 512 * 1024;  // about 16,000 events

// CYCCNT made 64 bits wide: it is read far more often than it wraps.
uint64_t cycles() {
  static uint64_t total;
  total += static_cast<uint32_t>(cycle_count() - static_cast<uint32_t>(total));
  return total;
}

// Collects pieces of text into console lines.
struct Lines {
  char text[160];
  size_t used;
};

void put_text(void* context, const char* text, size_t size) {
  Lines& lines = *static_cast<Lines*>(context);
  for (size_t index = 0; index < size; ++index) {
    if (text[index] != '\n') lines.text[lines.used++] = text[index];
    if (text[index] == '\n' || lines.used == sizeof lines.text - 1) {
      lines.text[lines.used] = '\0';
      console::print(lines.text);
      lines.used = 0;
    }
  }
}

}  // namespace

EtDump* start_profile(Arena& arena) {
  start_cycle_counter();
  void* place = arena.allocate(sizeof(EtDump), alignof(EtDump));
  return place == nullptr ? nullptr : new (place) EtDump(arena, kRecordBytes, cycles);
}

Error deliver_profile(const EtDump& dump, Arena& arena, const char* path) {
  if (dump.dropped() != 0) {
    return fail(Error::OutOfResources, "ETDump: %zu of %zu events did not fit", dump.dropped(),
                dump.dropped() + dump.recorded());
  }
  Span<const uint8_t> bytes;
  if (Error error = dump.finish(arena, &bytes); error != Error::Ok) return error;
#if ARMDEPLOY_SEMIHOSTING
  if (path != nullptr) return files::write(path, bytes.data, bytes.size);
#else
  static_cast<void>(path);
#endif
  Lines lines{{}, 0};
  print_base64(bytes, put_text, &lines);
  if (lines.used != 0) put_text(&lines, "\n", 1);
  return Error::Ok;
}

}  // namespace armdeploy

#endif

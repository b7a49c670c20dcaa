// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "runtime/etdump/etdump.h"

namespace armdeploy {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr size_t kPiece = 48;  // bytes; 64 characters

// `count` (1 to 3) bytes as four characters.
void encode(const uint8_t* bytes, size_t count, char* text) {
  const uint32_t second = count > 1 ? bytes[1] : 0;
  const uint32_t third = count > 2 ? bytes[2] : 0;
  const uint32_t group = static_cast<uint32_t>(bytes[0]) << 16 | second << 8 | third;
  for (size_t k = 0; k < 4; k++) text[k] = k <= count ? kAlphabet[group >> (18 - 6 * k) & 63u] : '=';
}

}  // namespace

void print_base64(Span<const uint8_t> dump, void (*put)(void*, const char*, size_t), void* context) {
  const auto line = [&](const char* text) { put(context, text, strlen(text)); };
  line("#[RUN THIS]\n# Writing etdump.bin [base64]\necho \"");
  for (size_t done = 0; done < dump.size; done += kPiece) {
    char text[kPiece / 3 * 4];
    size_t length = 0;
    for (size_t i = done; i < dump.size && i < done + kPiece; i += 3, length += 4) {
      encode(dump.data + i, dump.size - i < 3 ? dump.size - i : 3, text + length);
    }
    put(context, text, length);
  }
  line("\" | base64 -d >etdump.bin\n# Generate cpu cycle table with:\n");
  line(
      "python3 -m devtools.inspector.inspector_cli --etdump_path etdump.bin --source_time_scale cycles "
      "--target_time_scale cycles\n#[END]\n");
}

}  // namespace armdeploy

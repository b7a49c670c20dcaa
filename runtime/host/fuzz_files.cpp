// SPDX-License-Identifier: Apache-2.0
// fuzz_pte without libFuzzer: runs each file it is given; with --flip every byte of each file inverted, one
// at a time, and every length it can be cut to.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "runtime/host/files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

namespace {

void flip_each_byte(uint8_t* bytes, size_t size) {
  static const uint8_t kMasks[] = {0xFF, 0x01, 0x80};
  for (size_t i = 0; i < size; ++i) {
    for (const uint8_t mask : kMasks) {
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ mask);
      LLVMFuzzerTestOneInput(bytes, size);
      bytes[i] = static_cast<uint8_t>(bytes[i] ^ mask);
    }
  }
  for (size_t cut = 0; cut < size; cut += 1 + size / 997) LLVMFuzzerTestOneInput(bytes, cut);
}

}  // namespace

int main(int count, char** arguments) {
  const bool flip = count > 1 && std::strcmp(arguments[1], "--flip") == 0;
  int ran = 0;
  for (int i = flip ? 2 : 1; i < count; ++i) {
    armdeploy::host::Buffer file;
    if (!armdeploy::host::read_file(arguments[i], &file)) {
      std::fprintf(stderr, "fuzz_pte: cannot read %s\n", arguments[i]);
      return 2;
    }
    if (flip) {
      flip_each_byte(file.bytes(), file.size());
    } else {
      LLVMFuzzerTestOneInput(file.bytes(), file.size());
    }
    ++ran;
  }
  std::printf("%d files ran\n", ran);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/files.h"

#include <cstdio>

namespace armdeploy::host {

bool read_file(const char* path, Buffer* out) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) return false;
  const long size = std::fseek(file, 0, SEEK_END) == 0 ? std::ftell(file) : -1;
  bool read = size >= 0 && std::fseek(file, 0, SEEK_SET) == 0;
  if (read) {
    out->resize(static_cast<size_t>(size));
    read = std::fread(out->bytes(), 1, out->size(), file) == out->size();
  }
  std::fclose(file);
  return read;
}

bool write_file(const char* path, const void* bytes, size_t size) {
  std::FILE* file = std::fopen(path, "wb");
  if (!file) return false;
  const bool written = std::fwrite(bytes, 1, size, file) == size;
  return std::fclose(file) == 0 && written;
}

}  // namespace armdeploy::host

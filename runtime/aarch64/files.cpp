// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace armdeploy {
namespace {

constexpr size_t kBlock = 1 << 16;

bool refuse(const char* what, const std::string& path) {
  fprintf(stderr, "E cannot %s %s: %s\n", what, path.c_str(), strerror(errno));
  return false;
}

}  // namespace

bool read_file(const std::string& path, std::vector<uint8_t>* out) {
  FILE* file = fopen(path.c_str(), "rb");
  if (file == nullptr) return refuse("open", path);
  size_t used = 0;
  for (size_t got = 1; got != 0; used += got) {
    out->resize(used + kBlock);
    got = fread(out->data() + used, 1, kBlock, file);
  }
  const bool good = ferror(file) == 0;
  out->resize(used);
  fclose(file);
  return good || refuse("read", path);
}

bool write_file(const std::string& path, const void* data, size_t size) {
  FILE* file = fopen(path.c_str(), "wb");
  if (file == nullptr) return refuse("create", path);
  const bool written = fwrite(data, 1, size, file) == size;
  return (fclose(file) == 0 && written) || refuse("write", path);
}

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner/files.h"

#include "runtime/core/program.h"
#include "runtime/platform/semihosting.h"

namespace armdeploy::files {
namespace {

// An open file that is closed at the end of its scope.
class File {
 public:
  File(const char* path, semihosting::Mode mode) : handle_(semihosting::open(path, mode)) {}
  ~File() {
    if (is_open()) semihosting::close(handle_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return handle_ >= 0; }
  int32_t handle() const { return handle_; }

 private:
  int32_t handle_;
};

Error open_sized(const File& file, const char* path, size_t* size) {
  const int32_t length = file.is_open() ? semihosting::length(file.handle()) : -1;
  if (length < 0) return fail(Error::AccessFailed, "%s: cannot be opened for reading", path);
  *size = static_cast<size_t>(length);
  return Error::Ok;
}

}  // namespace

Error load(const char* path, Arena& arena, Span<const uint8_t>* out) {
  const File file(path, semihosting::Mode::ReadBinary);
  size_t size = 0;
  if (Error error = open_sized(file, path, &size); error != Error::Ok) return error;
  void* data = arena.allocate(size, kProgramAlign);
  if (data == nullptr) return Error::MemoryAllocationFailed;
  if (!semihosting::read(file.handle(), data, size))
    return fail(Error::AccessFailed, "%s: cannot be read", path);
  *out = {static_cast<const uint8_t*>(data), size};
  return Error::Ok;
}

Error read_exactly(const char* path, void* data, size_t size) {
  const File file(path, semihosting::Mode::ReadBinary);
  size_t found = 0;
  if (Error error = open_sized(file, path, &found); error != Error::Ok) return error;
  if (found != size) {
    return fail(Error::InvalidArgument, "%s: has %zu bytes, the input of the program %zu", path, found, size);
  }
  if (!semihosting::read(file.handle(), data, size))
    return fail(Error::AccessFailed, "%s: cannot be read", path);
  return Error::Ok;
}

Error write(const char* path, const void* data, size_t size) {
  const File file(path, semihosting::Mode::WriteBinary);
  if (!file.is_open()) return fail(Error::AccessFailed, "%s: cannot be opened for writing", path);
  if (!semihosting::write(file.handle(), data, size))
    return fail(Error::AccessFailed, "%s: cannot be written", path);
  return Error::Ok;
}

}  // namespace armdeploy::files

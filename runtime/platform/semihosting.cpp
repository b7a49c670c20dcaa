// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform/semihosting.h"

#include <cstring>

namespace armdeploy::semihosting {
namespace {

enum class Operation : uint32_t {
  Open = 0x01,
  Close = 0x02,
  Write0 = 0x04,
  Write = 0x05,
  Read = 0x06,
  FileLength = 0x0C,
  GetCommandLine = 0x15,
  ExitExtended = 0x20,
};

constexpr uint32_t kStoppedApplicationExit = 0x20026;

uint32_t word(const void* pointer) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer)); }

int32_t call(Operation operation, const void* argument) {
  register uint32_t r0 asm("r0") = static_cast<uint32_t>(operation);
  register uint32_t r1 asm("r1") = word(argument);
  asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return static_cast<int32_t>(r0);
}

}  // namespace

int32_t open(const char* path, Mode mode) {
  const uint32_t block[] = {word(path), static_cast<uint32_t>(mode), static_cast<uint32_t>(strlen(path))};
  return call(Operation::Open, block);
}

void close(int32_t handle) { call(Operation::Close, &handle); }

int32_t length(int32_t handle) { return call(Operation::FileLength, &handle); }

bool read(int32_t handle, void* data, size_t size) {
  const uint32_t block[] = {static_cast<uint32_t>(handle), word(data), static_cast<uint32_t>(size)};
  return call(Operation::Read, block) == 0;  // the result is the number of bytes not read
}

bool write(int32_t handle, const void* data, size_t size) {
  const uint32_t block[] = {static_cast<uint32_t>(handle), word(data), static_cast<uint32_t>(size)};
  return call(Operation::Write, block) == 0;
}

void print(const char* text) { call(Operation::Write0, text); }

bool command_line(char* text, size_t size) {
  uint32_t block[] = {word(text), static_cast<uint32_t>(size)};
  if (call(Operation::GetCommandLine, block) != 0 || block[1] >= size) {
    return false;
  }
  text[block[1]] = '\0';
  return true;
}

void exit(uint32_t status) {
  const uint32_t block[] = {kStoppedApplicationExit, status};
  for (;;) {
    call(Operation::ExitExtended, block);
  }
}

}  // namespace armdeploy::semihosting

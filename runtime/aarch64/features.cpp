// SPDX-License-Identifier: Apache-2.0
#include "features.h"

#include <dlfcn.h>
#include <sys/auxv.h>

#include <cstdint>
#include <cstring>

namespace {

// Bits of AT_HWCAP2 (asm/hwcap.h of Linux). SME and its extensions are 23 to 30 and, from later kernels, 57
// to 63; SME2 and what came with it are 37 to 42.
constexpr uint64_t bits(unsigned first, unsigned last) {
  return (~uint64_t{0} >> (63 - last)) & (~uint64_t{0} << first);
}
constexpr uint64_t kSme2 = bits(37, 42);
constexpr uint64_t kSme = bits(23, 30) | bits(57, 63) | kSme2;
constexpr uint64_t kHasSme = bits(23, 23);
constexpr uint64_t kHasSme2 = bits(37, 37);

uint64_t hidden = 0;

unsigned long told_by_the_system(unsigned long type) {
  using Function = unsigned long (*)(unsigned long);
  static const Function function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getauxval"));
  return function != nullptr ? function(type) : 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned long getauxval(unsigned long type) noexcept {
  const unsigned long value = told_by_the_system(type);
  return type == AT_HWCAP2 ? value & ~hidden : value;
}

namespace {

// The libraries look at the CPU in their constructors, long before main. What is in .preinit_array runs
// before these, with main's arguments.
void hide_before_constructors(int count, char** words, char**) {
  for (int at = 1; at < count; ++at) {
    const char* value = nullptr;
    if (strcmp(words[at], "--isa") == 0 && at + 1 < count) value = words[at + 1];
    if (strncmp(words[at], "--isa=", 6) == 0) value = words[at] + 6;
    if (value != nullptr) hidden = strcmp(value, "neon") == 0 ? kSme : strcmp(value, "sme") == 0 ? kSme2 : 0;
  }
}

using Constructor = void (*)(int, char**, char**);
__attribute__((section(".preinit_array"), used)) Constructor first_constructor = hide_before_constructors;

}  // namespace

namespace armdeploy {

const char* best_isa() {
  const uint64_t value = told_by_the_system(AT_HWCAP2);
  if ((value & kHasSme2) != 0) return "sme2";
  return (value & kHasSme) != 0 ? "sme" : "neon";
}

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform/cache.h"

#if ARMDEPLOY_ENABLE_CACHES

#include <cstdint>

#include "runtime/platform/barrier.h"
#include "runtime/platform/system_control.h"

namespace armdeploy {
namespace {

constexpr uintptr_t kLineBytes = 32;  // Cortex-M7, M55 and M85

void for_each_line(uintptr_t operation, const void* data, size_t size) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(data);
  memory_barrier();
  for (uintptr_t line = start & ~(kLineBytes - 1); line < start + size; line += kLineBytes) {
    scs::reg(operation) = static_cast<uint32_t>(line);
  }
  asm volatile("dsb\n isb" ::: "memory");
}

void invalidate_data_cache() {
  const uint32_t geometry = scs::reg(scs::kCacheSizeId);
  const uint32_t sets = (geometry >> 13 & 0x7FFF) + 1;
  const uint32_t ways = (geometry >> 3 & 0x3FF) + 1;
  const uint32_t way_shift = ways > 1 ? static_cast<uint32_t>(__builtin_clz(ways - 1)) : 0;
  for (uint32_t set = 0; set < sets; ++set) {
    for (uint32_t way = 0; way < ways; ++way) {
      scs::reg(scs::kDataCacheInvalidateBySetWay) = way << way_shift | set * kLineBytes;
    }
  }
}

}  // namespace

void enable_caches() {
  asm volatile("dsb\n isb" ::: "memory");
  scs::reg(scs::kInstructionCacheInvalidateAll) = 0;
  invalidate_data_cache();
  memory_barrier();
  const uint32_t control = scs::reg(scs::kConfigurationControl);
  scs::reg(scs::kConfigurationControl) = control | scs::kInstructionCacheEnable | scs::kDataCacheEnable;
  asm volatile("dsb\n isb" ::: "memory");
}

void clean_data(const void* data, size_t size) { for_each_line(scs::kDataCacheCleanByAddress, data, size); }

void invalidate_data(const void* data, size_t size) {
  for_each_line(scs::kDataCacheInvalidateByAddress, data, size);
}

}  // namespace armdeploy

#endif

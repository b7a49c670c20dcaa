// SPDX-License-Identifier: Apache-2.0
// Cache maintenance by address range, as the NPU, which reads and writes memory behind the caches, needs it.
// Caches stay off unless the build turns them on (ENABLE_CACHES); then everything here is empty.
#pragma once

#include <cstddef>

namespace armdeploy {

#if ARMDEPLOY_ENABLE_CACHES
// Invalidates both caches and turns them on.
void enable_caches();

// Writes modified lines of the range to memory: before the NPU reads it.
void clean_data(const void* data, size_t size);

// Drops the lines of the range: before the CPU reads what the NPU wrote. Both ends must be line aligned, or
// the lines at the ends belong to nobody who has modified them.
void invalidate_data(const void* data, size_t size);
#else
inline void enable_caches() {}
inline void clean_data(const void*, size_t) {}
inline void invalidate_data(const void*, size_t) {}
#endif

}  // namespace armdeploy

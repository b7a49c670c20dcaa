// SPDX-License-Identifier: Apache-2.0
// The process's clock. The program exports `clock_gettime`, so the libraries' timers ask it as well.
//
// With `count_calls` it tells how often it was asked, one call as one microsecond. ETDump's and XNNPACK's
// time stamps are then numbers of calls; an emulator that logs what it executes can cut its log at the calls
// and knows which instructions belong to which operator.
#pragma once

#include <cstdint>

namespace armdeploy {

void count_calls();

// Calls counted so far.
uint64_t counted_calls();

// Nanoseconds of the monotonic clock, by way of the exported function.
uint64_t now();

// Address of a function that every counted call enters once, and nothing else.
uintptr_t counter_address();

}  // namespace armdeploy

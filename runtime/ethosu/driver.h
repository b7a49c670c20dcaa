// SPDX-License-Identifier: Apache-2.0
// The driver of the board's Ethos-U: one NPU, one job at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/error.h"
#include "runtime/core/span.h"
#include "runtime/ethosu/registers.h"
#include "runtime/ethosu/stream.h"

namespace armdeploy::ethosu {

// CONFIG and ID registers of the NPU, as words and in words.
struct Identity {
  uint32_t config = 0;
  uint32_t id = 0;

  Family family() const { return static_cast<Family>(config >> 28); }
  unsigned macs() const { return 1u << (config & 0xF); }
  // "ethos-u85-256"
  void describe(char* text, size_t size) const;
};

// Resets the NPU, identifies it, sets its bus limits and lets its interrupt through. Errors: NotSupported (no
// Ethos-U there, or one that refuses to be reset).
Error initialise();

const Identity& identity();

// Whether the NPU runs a stream. Errors: DelegateInvalidCompatibility, naming both NPUs.
Error require_compatible(const Stream& stream);

struct Job {
  Span<const uint8_t> commands;
  const void* bases[kBasePointers] = {};  // address of every region; null: not used
};

// Runs a job to its end. Errors: Internal (the NPU's error status, in words, or no end within the time
// limit).
Error run(const Job& job);

struct Activity {
  uint32_t jobs;
  uint32_t wait_cycles;  // CPU cycles from start to end of all jobs; 0 without a cycle counter
};
const Activity& activity();

// Access to a register of the block at its byte offset.
uint32_t read_register(uint32_t offset);
void write_register(uint32_t offset, uint32_t value);

}  // namespace armdeploy::ethosu

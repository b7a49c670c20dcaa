// SPDX-License-Identifier: Apache-2.0
// The driver's part of a command stream: what it was built for and where its register commands are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/error.h"
#include "runtime/core/span.h"

namespace armdeploy::ethosu {

struct Stream {
  uint32_t config = 0;           // CONFIG word of the NPU it was built for
  uint32_t id = 0;               // ID word
  Span<const uint8_t> commands;  // register commands, a whole number of words

  // Reads the header of a driver payload (COP1 actions or COP2). Errors: InvalidProgram, NotSupported.
  static Error parse(Span<const uint8_t> payload, Stream* out);

  // The regions that the commands name: bit n for region n.
  uint32_t regions() const;
};

}  // namespace armdeploy::ethosu

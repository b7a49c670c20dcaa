// SPDX-License-Identifier: Apache-2.0
// VelaBin: what ExecuTorch's Ethos-U backend puts into a delegate's blob.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/error.h"
#include "runtime/core/program.h"
#include "runtime/core/span.h"

namespace armdeploy::ethosu {

constexpr size_t kAlign = 16;  // of command stream, weights and every region

// One input or output as the command stream sees it.
struct TensorSpec {
  uint32_t dims[6];
  uint32_t elem_size;
  uint32_t offset;  // in `region`
  uint32_t region;
  uint32_t bytes;
};

// A list of `count` packed tensors in the blob.
class TensorList {
 public:
  size_t count = 0;
  TensorSpec operator[](size_t index) const;

 private:
  friend struct VelaBin;
  Error check(Span<const uint8_t> block, const char* name);

  const uint8_t* packed_ = nullptr;
};

struct VelaBin {
  Span<const uint8_t> cmd_data;     // driver header and command stream
  Span<const uint8_t> weight_data;  // region 0; may be empty
  uint32_t scratch_size = 0;        // bytes of region 1
  TensorList inputs;
  TensorList outputs;

  // Checks every header, length and tensor; keeps pointers into `blob` and into the program's named data.
  // Errors: InvalidProgram (damaged), NotFound (an external block that the program does not have),
  // DelegateInvalidCompatibility (stream or weights not at a multiple of 16).
  static Error parse(Span<const uint8_t> blob, const Program& program, VelaBin* out);

 private:
  Error keep(size_t kind, Span<const uint8_t> data);
};

}  // namespace armdeploy::ethosu

// SPDX-License-Identifier: Apache-2.0
// One method of a program, ready to run: values, resolved kernels, initialised delegates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/arena.h"
#include "runtime/core/backend.h"
#include "runtime/core/error.h"
#include "runtime/core/evalue.h"
#include "runtime/core/event.h"
#include "runtime/core/program.h"
#include "runtime/core/registry.h"
#include "runtime/core/span.h"

namespace armdeploy {

// The arenas a method lives in. They are not cleared. All must outlive the method.
struct MethodMemory {
  Arena* method = nullptr;  // the method's own structures and its delegates' handles
  Arena* temp = nullptr;    // per call: kernels and delegates
  Arena* fast = nullptr;    // optional, for delegates
  // planned[i] holds memory id i + 1. Ids past the end share the last arena; none at all: `method`.
  Span<Arena* const> planned;
  EventHook events;  // optional
};

constexpr uint64_t kInstructionBudget = 10'000'000;  // ExecuTorch's limit

class Method {
 public:
  // Checks everything of the method that the file can get wrong, resolves its operators, initialises its
  // delegates. Errors: InvalidProgram, NotSupported, OperatorMissing (names them), NotFound (names the
  // backend), InvalidArgument (no such method), MemoryAllocationFailed, and whatever a backend returns.
  static Error load(const Program& program, const char* name, const MethodMemory& memory, Method* out);

  const char* name() const { return name_; }
  size_t input_count() const { return inputs_.size; }
  size_t output_count() const { return outputs_.size; }
  const EValue& input(size_t index) const { return values_[static_cast<size_t>(inputs_[index])]; }
  const EValue& output(size_t index) const { return values_[static_cast<size_t>(outputs_[index])]; }
  size_t instruction_count() const;

  // A tensor of its present shape from raw bytes (copied), or an int64 / double / bool in its own 8, 8, 1
  // bytes. Another number of bytes: InvalidArgument.
  Error set_input(size_t index, Span<const uint8_t> bytes);
  // The same with a shape (bounded dynamic inputs) and a type that must be the tensor's.
  Error set_input(size_t index, ScalarType dtype, Span<const int32_t> sizes, Span<const uint8_t> bytes);

  // Where the input tensor's bytes go, for reading a file straight into it (`nbytes` of them). Null: not a
  // tensor. A tensor without planned memory gets its place in the method arena at load.
  Tensor* input_tensor(size_t index) const;

  // Runs the method once. `budget`: instructions it may execute; one more is InvalidProgram ("endless loop").
  Error execute(uint64_t budget = kInstructionBudget);

 private:
  friend class MethodLoader;

  struct Chain;
  struct DelegateSlot;
  struct Instruction;

  static const char* instruction_name(const Instruction& instruction);
  Error step(const Instruction& instruction, uint32_t chain, uint32_t index, uint32_t* next);
  Error call_delegate(const Instruction& instruction, uint32_t chain, uint32_t index);

  const char* name_ = "";
  const Program* program_ = nullptr;
  MethodMemory memory_;
  Span<EValue> values_;
  Span<const int32_t> inputs_;
  Span<const int32_t> outputs_;
  Span<Chain> chains_;
  const DelegateSlot* delegates_ = nullptr;
};

}  // namespace armdeploy

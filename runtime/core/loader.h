// SPDX-License-Identifier: Apache-2.0
// Turns an execution plan into a Method: everything the file can get wrong is found here.
#pragma once

#include "runtime/core/method.h"
#include "runtime/core/schema.h"

namespace armdeploy {

// What an instruction is after decoding. Arguments are pointers to the method's values:
// Kernel, Delegate: the call's; Move: from, to; JumpFalse: condition; Free: tensor.
struct Method::Instruction {
  EventKind kind;
  bool view;  // a kernel that gives its out tensor another tensor's memory
  union {
    const Kernel* kernel;
    DelegateSlot* delegate;
    uint32_t destination;  // of JumpFalse; at most the chain's length
  };
  Span<EValue*> args;
};

struct Method::Chain {
  Span<Instruction> instructions;
};

struct Method::DelegateSlot {
  const Backend* backend;
  void* handle;
};

// Gives back, at the end of its scope, what was taken from the memories of one call.
class TemporaryMemory {
 public:
  explicit TemporaryMemory(const MethodMemory& memory)
      : temp_(memory.temp),
        fast_(memory.fast),
        temp_mark_(temp_->mark()),
        fast_mark_{fast_ ? fast_->mark().used : 0} {}
  ~TemporaryMemory() {
    temp_->release(temp_mark_);
    if (fast_) fast_->release(fast_mark_);
  }
  TemporaryMemory(const TemporaryMemory&) = delete;
  TemporaryMemory& operator=(const TemporaryMemory&) = delete;

 private:
  Arena* temp_;
  Arena* fast_;
  Arena::Mark temp_mark_;
  Arena::Mark fast_mark_;
};

class MethodLoader {
 public:
  MethodLoader(const Program& program, const fb::ExecutionPlan& plan, Method& method)
      : program_(program), plan_(plan), method_(method) {}

  Error load();

 private:
  // planned.cpp
  Error allocate_planned();
  Error planned_address(const fb::AllocationDetails& where, size_t bytes, void** out) const;

  // values.cpp
  Error load_values();
  Error load_value(const fb::EValue& source, EValue* out);
  Error load_boxed(const flatbuffers::Vector<int32_t>* items, Tag tag, EValue* out);
  Error load_int_list(const flatbuffers::Vector<int64_t>* items, EValue* out);
  Error check_list(const EValue& list, size_t index) const;
  Error value_at(int64_t index, EValue** out) const;

  // tensors.cpp
  Error load_tensor(const fb::Tensor& source, Tensor** out);
  Error load_data(const fb::Tensor& source, Tensor* tensor);
  Error constant_data(size_t index, Span<const uint8_t>* out) const;
  Error initial_data(const fb::Tensor& source, Span<const uint8_t>* out) const;
  Error own_memory(const EValue& value);

  // delegates.cpp
  Error load_delegates();
  Error load_delegate(const fb::BackendDelegate& source, uint32_t index, Method::DelegateSlot* out);
  Error delegate_blob(const fb::BackendDelegateDataReference* where, Span<const uint8_t>* out) const;
  Error compile_specs(const fb::BackendDelegate& source, Span<CompileSpec>* out);

  // chains.cpp
  Error load_chains();
  Error load_chain(const fb::Chain& source, Method::Chain* out);
  Error load_instruction(const fb::Instruction& source, size_t length, Method::Instruction* out);
  Error load_arguments(const int32_t* indices, size_t count, Span<EValue*>* out);
  Error load_call(const flatbuffers::Vector<int32_t>* indices, Method::Instruction* out);
  Error load_kernel(size_t index, Method::Instruction* out);

  Error check_interface(const flatbuffers::Vector<int32_t>& indices, Span<const int32_t>* out);
  Error give_outputs_memory();

  template <class T>
  Error allocate(size_t count, T** out) {
    *out = memory_.method->allocate_array<T>(count);
    return *out ? Error::Ok : Error::MemoryAllocationFailed;
  }

  const Program& program_;
  const fb::ExecutionPlan& plan_;
  Method& method_;
  MethodMemory& memory_ = method_.memory_;
  Span<void*> planned_;          // address of every memory id, from 1
  Span<const Kernel*> kernels_;  // by operator; null: not looked up or missing
  Span<Method::DelegateSlot> delegates_;
  size_t missing_ = 0;  // operators
};

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/method.h"

#include "runtime/core/loader.h"

namespace armdeploy {
namespace {

// Whether a tensor can be read: it has memory, or no elements.
bool has_memory(const Tensor* tensor) { return !tensor || tensor->data || tensor->capacity == 0; }

bool is_tensor_list(const EValue& value) {
  return value.tag == Tag::ListTensor || value.tag == Tag::ListOptionalTensor;
}

// Calls `check(tensor)` for the tensor or for every tensor of the list; true when all are.
template <class Check>
bool all_tensors(const EValue& value, Check check) {
  if (value.is_tensor()) return check(value.t);
  if (!is_tensor_list(value)) return true;
  for (size_t i = 0; i < value.list.size; ++i) {
    if (const Tensor* tensor = value.tensor_at(i); tensor && !check(tensor)) return false;
  }
  return true;
}

// Outputs of a kernel call: the last value repeats what is returned, one tensor or a list of them, and the
// out arguments stand just before it. None of them may be a constant of the program.
bool outputs_writable(Span<EValue*> args) {
  if (args.empty()) return true;
  const EValue& last = *args[args.size - 1];
  size_t count = 1;
  if (last.is_tensor()) count = 2;
  if (is_tensor_list(last)) count = 1 + (last.list.size > 0 ? last.list.size : 1);
  if (count > args.size) count = args.size;
  for (size_t i = args.size - count; i < args.size; ++i) {
    if (!all_tensors(*args[i], [](const Tensor* tensor) { return !tensor->constant; })) return false;
  }
  return true;
}

// Kernels and delegates trust the memory behind their arguments, which moves, frees and views can change.
Error check_call(Span<EValue*> args, bool view, bool kernel) {
  for (size_t i = 0; i + (view ? 1 : 0) < args.size; ++i) {
    const bool out_of_view = view && args[i] == args[args.size - 1];
    if (!out_of_view && !all_tensors(*args[i], has_memory)) {
      return fail(Error::InvalidState, "argument %zu: a tensor without memory", i);
    }
  }
  if (kernel && !view && !outputs_writable(args))
    return fail(Error::InvalidProgram, "its output is a constant");
  return Error::Ok;
}

Error condition(const EValue& value, bool* out) {
  *out = true;
  if (value.tag == Tag::Bool) {
    *out = value.b;
    return Error::Ok;
  }
  if (!value.is_tensor() || value.t->dtype != ScalarType::Bool) {
    return fail(Error::InvalidProgram, "a jump needs a bool or a tensor of bools");
  }
  if (!has_memory(value.t)) return fail(Error::InvalidState, "condition without memory");
  const size_t count = value.t->numel();
  for (size_t i = 0; i < count; ++i) *out = *out && value.t->as<const uint8_t>()[i] != 0;
  return Error::Ok;
}

// Nothing to give back: memory is planned, and a next inference finds it where it was.
Error free_tensor(const EValue& value) {
  return value.is_tensor() ? Error::Ok : fail(Error::InvalidProgram, "free of a value that is no tensor");
}

}  // namespace

Error MethodLoader::check_interface(const flatbuffers::Vector<int32_t>& indices, Span<const int32_t>* out) {
  *out = {indices.data(), indices.size()};
  for (const int32_t index : *out) {
    EValue* value = nullptr;
    const Error error = value_at(index, &value);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

// Outputs that a view kernel points elsewhere need no memory of their own.
Error MethodLoader::give_outputs_memory() {
  for (const int32_t index : method_.outputs_) {
    const EValue* output = &method_.values_[static_cast<size_t>(index)];
    bool viewed = false;
    for (const Method::Chain& chain : method_.chains_) {
      for (const Method::Instruction& instruction : chain.instructions) {
        const size_t count = instruction.args.size;
        viewed |= instruction.view && count > 0 && instruction.args[count - 1] == output;
      }
    }
    const Error error = viewed ? Error::Ok : own_memory(*output);
    if (error != Error::Ok) return error;
  }
  return Error::Ok;
}

Error MethodLoader::load() {
  Error error = allocate_planned();
  if (error == Error::Ok) error = load_values();
  if (error == Error::Ok) error = check_interface(*plan_.inputs(), &method_.inputs_);
  if (error == Error::Ok) error = check_interface(*plan_.outputs(), &method_.outputs_);
  if (error == Error::Ok) error = load_delegates();
  if (error == Error::Ok) error = load_chains();
  for (size_t i = 0; error == Error::Ok && i < method_.inputs_.size; ++i)
    error = own_memory(method_.input(i));
  if (error == Error::Ok) error = give_outputs_memory();
  return error;
}

Error Method::load(const Program& program, const char* name, const MethodMemory& memory, Method* out) {
  *out = Method();
  const fb::ExecutionPlan* plan = program.plan(name);
  if (!plan) return fail(Error::InvalidArgument, "program: no method %s", name);
  out->name_ = plan->name()->c_str();
  out->program_ = &program;
  out->memory_ = memory;
  memory.events.emit({EventKind::MethodLoad, true, 0, 0, out->name_});
  const Error error = MethodLoader(program, *plan, *out).load();
  memory.events.emit({EventKind::MethodLoad, false, 0, 0, out->name_});
  return error;
}

size_t Method::instruction_count() const {
  size_t count = 0;
  for (const Chain& chain : chains_) count += chain.instructions.size;
  return count;
}

Tensor* Method::input_tensor(size_t index) const {
  const EValue& value = input(index);
  return value.is_tensor() && !value.t->constant && has_memory(value.t) ? value.t : nullptr;
}

Error Method::set_input(size_t index, Span<const uint8_t> bytes) {
  if (index >= inputs_.size)
    return fail(Error::InvalidArgument, "input %zu: the method has %zu", index, inputs_.size);
  EValue& value = values_[static_cast<size_t>(inputs_[index])];
  if (value.is_none()) return Error::Ok;  // an argument that was None at export has no bytes to take
  const Tensor* tensor = input_tensor(index);
  void* target = &value.i;
  size_t wanted = value.tag == Tag::Bool ? 1 : 8;
  if (tensor) {
    target = tensor->data;
    wanted = tensor->nbytes();
  } else if (!value.is_scalar()) {
    return fail(Error::InvalidArgument, "input %zu is neither a tensor in memory nor a number", index);
  }
  if (bytes.size != wanted) {
    return fail(Error::InvalidArgument, "input %zu: got %zu bytes, the method takes %zu", index, bytes.size,
                wanted);
  }
  if (value.tag == Tag::Bool) {
    value.b = bytes[0] != 0;
  } else if (wanted != 0) {
    std::memcpy(target, bytes.data, wanted);
  }
  return Error::Ok;
}

Error Method::set_input(size_t index, ScalarType dtype, Span<const int32_t> sizes,
                        Span<const uint8_t> bytes) {
  Tensor* tensor = index < inputs_.size ? input_tensor(index) : nullptr;
  if (!tensor || tensor->dtype != dtype) {
    return fail(Error::InvalidArgument, "input %zu is not a tensor of scalar type %d", index,
                static_cast<int>(dtype));
  }
  const Error error = tensor->resize(sizes.data, sizes.size);
  return error == Error::Ok ? set_input(index, bytes) : error;
}

Error Method::call_delegate(const Instruction& instruction, uint32_t chain, uint32_t index) {
  const DelegateSlot& slot = *instruction.delegate;
  const auto number = static_cast<uint32_t>(&slot - delegates_);
  BackendContext context{*memory_.method, *memory_.temp, memory_.fast, *program_,      name_,
                         number,          chain,         index,        &memory_.events};
  return slot.backend->execute(context, slot.handle, instruction.args);
}

Error Method::step(const Instruction& instruction, uint32_t chain, uint32_t index, uint32_t* next) {
  const Span<EValue*> args = instruction.args;
  const bool kernel = instruction.kind == EventKind::Kernel;
  *next = index + 1;
  switch (instruction.kind) {
    case EventKind::Kernel:
    case EventKind::Delegate: {
      const Error error = check_call(args, instruction.view, kernel);
      if (error != Error::Ok) return error;
      const TemporaryMemory temporary(memory_);
      if (!kernel) return call_delegate(instruction, chain, index);
      KernelContext context{*memory_.temp, instruction.kernel->name};
      return instruction.kernel->run(context, args);
    }
    case EventKind::Move: *args[1] = *args[0]; return Error::Ok;
    case EventKind::JumpFalse: {
      bool on = true;
      const Error error = condition(*args[0], &on);
      if (!on) *next = instruction.destination;
      return error;
    }
    default: return free_tensor(*args[0]);
  }
}

const char* Method::instruction_name(const Instruction& instruction) {
  if (instruction.kind == EventKind::Kernel) return instruction.kernel->name;
  return instruction.kind == EventKind::Delegate ? instruction.delegate->backend->id : "";
}

Error Method::execute(uint64_t budget) {
  const EventHook& events = memory_.events;
  Error error = Error::Ok;
  events.emit({EventKind::MethodExecute, true, 0, 0, name_});
  for (uint32_t chain = 0; error == Error::Ok && chain < chains_.size; ++chain) {
    const Span<Instruction> instructions = chains_[chain].instructions;
    for (uint32_t index = 0, next = 0; error == Error::Ok && index < instructions.size; index = next) {
      if (budget-- == 0) {
        error = fail(Error::InvalidProgram, "method %s: too many instructions; an endless loop?", name_);
        break;
      }
      const Instruction& instruction = instructions[index];
      const char* name = instruction_name(instruction);
      events.emit({instruction.kind, true, chain, index, name});
      error = step(instruction, chain, index, &next);
      events.emit({instruction.kind, false, chain, index, name});
      if (error != Error::Ok) {
        error = fail(error, "method %s: instruction %u:%u %s failed with %s", name_,
                     static_cast<unsigned>(chain), static_cast<unsigned>(index), name, error_name(error));
      }
    }
  }
  events.emit({EventKind::MethodExecute, false, 0, 0, name_});
  return error;
}

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// Instructions: every index, jump target and argument list is checked here, so that execution runs blind.
#include "runtime/core/loader.h"

namespace armdeploy {
namespace {

// Stands for an operator that was looked for and named in the log.
const Kernel kMissing = {"", nullptr};

const char* overload_of(const fb::Operator& source) {
  return source.overload() ? source.overload()->c_str() : "";
}

}  // namespace

Error MethodLoader::load_arguments(const int32_t* indices, size_t count, Span<EValue*>* out) {
  Error error = allocate(count, &out->data);
  out->size = count;
  for (size_t i = 0; error == Error::Ok && i < count; ++i) error = value_at(indices[i], &(*out)[i]);
  return error;
}

Error MethodLoader::load_call(const flatbuffers::Vector<int32_t>* indices, Method::Instruction* out) {
  if (!indices) return fail(Error::InvalidProgram, "call without arguments");
  return load_arguments(indices->data(), indices->size(), &out->args);
}

// A missing operator is named once and counted; the others are still looked for.
Error MethodLoader::load_kernel(size_t index, Method::Instruction* out) {
  if (index >= kernels_.size || !plan_.operators()->Get(static_cast<unsigned>(index))->name()) {
    return fail(Error::InvalidProgram, "operator %zu of %zu", index, kernels_.size);
  }
  const fb::Operator& source = *plan_.operators()->Get(static_cast<unsigned>(index));
  if (!kernels_[index]) {
    kernels_[index] = find_kernel(source.name()->c_str(), overload_of(source));
    if (!kernels_[index]) {
      report(Level::Error, "operator %s.%s is not in this build", source.name()->c_str(),
             overload_of(source));
      kernels_[index] = &kMissing;
      ++missing_;
    }
  }
  out->kernel = kernels_[index];
  out->view = std::strcmp(source.name()->c_str(), "executorch_prim::et_view") == 0;
  return Error::Ok;
}

Error MethodLoader::load_instruction(const fb::Instruction& source, size_t length, Method::Instruction* out) {
  *out = {EventKind::Kernel, false, {nullptr}, {}};
  const void* args = source.instr_args();
  if (!args) return fail(Error::InvalidProgram, "no instruction");
  switch (source.instr_args_type()) {
    case fb::InstructionArguments::KernelCall: {
      const auto* call = static_cast<const fb::KernelCall*>(args);
      const Error error = load_call(call->args(), out);
      return error == Error::Ok ? load_kernel(static_cast<size_t>(call->op_index()), out) : error;
    }
    case fb::InstructionArguments::DelegateCall: {
      const auto* call = static_cast<const fb::DelegateCall*>(args);
      const auto index = static_cast<size_t>(call->delegate_index());
      if (index >= delegates_.size)
        return fail(Error::InvalidProgram, "delegate %zu of %zu", index, delegates_.size);
      out->kind = EventKind::Delegate;
      out->delegate = &delegates_[index];
      return load_call(call->args(), out);
    }
    case fb::InstructionArguments::MoveCall: {
      const auto* move = static_cast<const fb::MoveCall*>(args);
      const int32_t indices[] = {move->move_from(), move->move_to()};
      out->kind = EventKind::Move;
      return load_arguments(indices, 2, &out->args);
    }
    case fb::InstructionArguments::JumpFalseCall: {
      const auto* jump = static_cast<const fb::JumpFalseCall*>(args);
      const int32_t indices[] = {jump->cond_value_index()};
      out->kind = EventKind::JumpFalse;
      out->destination = static_cast<uint32_t>(jump->destination_instruction());
      if (out->destination > length)
        return fail(Error::InvalidProgram, "jump out of its chain of %zu", length);
      return load_arguments(indices, 1, &out->args);
    }
    case fb::InstructionArguments::FreeCall: {
      const int32_t indices[] = {static_cast<const fb::FreeCall*>(args)->value_index()};
      out->kind = EventKind::Free;
      return load_arguments(indices, 1, &out->args);
    }
    default:
      return fail(Error::InvalidProgram, "unknown kind of instruction %d",
                  static_cast<int>(source.instr_args_type()));
  }
}

Error MethodLoader::load_chain(const fb::Chain& source, Method::Chain* out) {
  if (!source.instructions()) return fail(Error::InvalidProgram, "chain without instructions");
  const size_t count = source.instructions()->size();
  Error error = allocate(count, &out->instructions.data);
  if (error != Error::Ok) return error;
  out->instructions.size = count;
  for (unsigned i = 0; i < count; ++i) {
    error = load_instruction(*source.instructions()->Get(i), count, &out->instructions[i]);
    if (error != Error::Ok) return fail(error, "method %s: instruction %u cannot be used", method_.name_, i);
  }
  return Error::Ok;
}

Error MethodLoader::load_chains() {
  const size_t count = size_of(plan_.chains());
  if (count == 0) return fail(Error::InvalidProgram, "method %s: no chain of instructions", method_.name_);
  kernels_.size = size_of(plan_.operators());
  Error error = allocate(kernels_.size, &kernels_.data);
  for (size_t i = 0; error == Error::Ok && i < kernels_.size; ++i) kernels_[i] = nullptr;
  if (error == Error::Ok) error = allocate(count, &method_.chains_.data);
  method_.chains_.size = count;
  for (unsigned i = 0; error == Error::Ok && i < count; ++i)
    error = load_chain(*plan_.chains()->Get(i), &method_.chains_[i]);
  if (error != Error::Ok || missing_ == 0) return error;
  return fail(Error::OperatorMissing, "method %s: %zu operator(s) missing, named above", method_.name_,
              missing_);
}

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// Delegates: find the backend, hand it the blob.
#include "runtime/core/loader.h"

namespace armdeploy {

Error MethodLoader::delegate_blob(const fb::BackendDelegateDataReference* where,
                                  Span<const uint8_t>* out) const {
  if (where && where->location() == fb::DataLocation::SEGMENT) return program_.segment(where->index(), out);
  const auto* blobs = program_.flat().backend_delegate_data();
  if (!where || where->location() != fb::DataLocation::INLINE || where->index() >= size_of(blobs)) {
    return fail(Error::NotFound, "its data is not in the program");
  }
  const flatbuffers::Vector<uint8_t>* bytes = blobs->Get(where->index())->data();
  *out = bytes ? Span<const uint8_t>{bytes->data(), bytes->size()} : Span<const uint8_t>{};
  return Error::Ok;
}

// The list itself is temporary; keys and values stay in the program.
Error MethodLoader::compile_specs(const fb::BackendDelegate& source, Span<CompileSpec>* out) {
  const auto* specs = source.compile_specs();
  out->size = size_of(specs);
  out->data = memory_.temp->allocate_array<CompileSpec>(out->size);
  if (!out->data) return Error::MemoryAllocationFailed;
  for (unsigned i = 0; i < out->size; ++i) {
    const fb::CompileSpec& spec = *specs->Get(i);
    if (!spec.key() || !spec.value()) return fail(Error::InvalidProgram, "compile spec %u lacks a field", i);
    (*out)[i] = {spec.key()->c_str(), {spec.value()->data(), spec.value()->size()}};
  }
  return Error::Ok;
}

Error MethodLoader::load_delegate(const fb::BackendDelegate& source, uint32_t index,
                                  Method::DelegateSlot* out) {
  if (!source.id()) return fail(Error::InvalidProgram, "delegate without a backend id");
  const char* id = source.id()->c_str();
  *out = {find_backend(id), nullptr};
  if (!out->backend) return fail(Error::NotFound, "backend %s is not in this build", id);
  Span<const uint8_t> blob;
  Span<CompileSpec> specs;
  Error error = delegate_blob(source.processed(), &blob);
  if (error == Error::Ok) error = compile_specs(source, &specs);
  if (error != Error::Ok)
    return fail(error, "backend %s: delegate %u cannot be used", id, static_cast<unsigned>(index));
  BackendContext context{*memory_.method, *memory_.temp, memory_.fast, program_, method_.name_, index, 0, 0,
                         &memory_.events};
  memory_.events.emit({EventKind::DelegateInit, true, 0, index, id});
  error = out->backend->init(context, blob, {specs.data, specs.size}, &out->handle);
  memory_.events.emit({EventKind::DelegateInit, false, 0, index, id});
  return error;
}

Error MethodLoader::load_delegates() {
  const size_t count = plan_.delegates()->size();
  Error error = allocate(count, &delegates_.data);
  delegates_.size = count;
  method_.delegates_ = delegates_.data;
  for (unsigned i = 0; error == Error::Ok && i < count; ++i) {
    const TemporaryMemory temporary(memory_);
    error = load_delegate(*plan_.delegates()->Get(i), i, &delegates_[i]);
  }
  return error;
}

}  // namespace armdeploy

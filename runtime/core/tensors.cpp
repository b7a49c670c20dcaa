// SPDX-License-Identifier: Apache-2.0
// Tensors of a method: shape, order of dimensions, and where the bytes are.
#include "runtime/core/loader.h"

namespace armdeploy {
namespace {

// A shape that can be trusted: few dimensions, none negative, an order that names each once, a size in bytes.
Error check_shape(const fb::Tensor& source, size_t element, size_t* bytes) {
  const size_t rank = size_of(source.sizes());
  if (!source.sizes() || !source.dim_order() || rank > kMaxRank || source.dim_order()->size() != rank) {
    return fail(Error::InvalidProgram,
                "tensor: sizes or dim_order missing, of different length or longer than %zu", kMaxRank);
  }
  uint32_t seen = 0;
  bool overflow = false;
  bool empty = false;
  *bytes = element;
  for (unsigned i = 0; i < rank; ++i) {
    const int32_t size = source.sizes()->Get(i);
    const uint8_t dimension = source.dim_order()->Get(i);
    if (size < 0 || dimension >= rank || (seen >> dimension & 1) != 0) {
      return fail(Error::InvalidProgram, "tensor: dimension %u has size %d and order %u", i,
                  static_cast<int>(size), unsigned{dimension});
    }
    seen |= 1U << dimension;
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(*bytes, static_cast<size_t>(size), bytes);
  }
  if (overflow && !empty) return fail(Error::InvalidProgram, "tensor: more bytes than memory has addresses");
  if (empty) *bytes = 0;
  return Error::Ok;
}

bool is_external(const fb::Tensor& source) {
  return source.extra_tensor_info() &&
         source.extra_tensor_info()->location() == fb::TensorDataLocation::EXTERNAL;
}

Error check_kind(const fb::Tensor& source) {
  const auto dynamism = source.shape_dynamism();
  const bool elsewhere =
      source.extra_tensor_info() && source.extra_tensor_info()->device_type() != fb::DeviceType::CPU;
  if (source.storage_offset() != 0 || elsewhere || dynamism == fb::TensorShapeDynamism::DYNAMIC_UNBOUND) {
    return fail(Error::NotSupported, "tensor: unbounded shape, another device or a storage offset");
  }
  if (static_cast<uint8_t>(dynamism) > static_cast<uint8_t>(Dynamism::Bounded)) {
    return fail(Error::InvalidProgram, "tensor: shape dynamism %d", static_cast<int>(dynamism));
  }
  if (element_size(static_cast<ScalarType>(source.scalar_type())) == 0) {
    return fail(Error::InvalidProgram, "tensor: scalar type %d", static_cast<int>(source.scalar_type()));
  }
  if (is_external(source)) {
    const Error error = source.allocation_info() ? Error::InvalidExternalData : Error::InvalidState;
    return fail(error, "tensor: its data is in another file (.ptd), which is not supported");
  }
  return Error::Ok;
}

}  // namespace

// Data of constant `index`, from where it starts to the end of its buffer or segment.
Error MethodLoader::constant_data(size_t index, Span<const uint8_t>* out) const {
  const fb::SubsegmentOffsets* constants = program_.flat().constant_segment();
  if (constants && size_of(constants->offsets()) > 0) {
    const Error error = program_.segment(constants->segment_index(), out);
    if (error != Error::Ok) return error;
    const uint64_t offset =
        index < constants->offsets()->size() ? element64(*constants->offsets(), index) : UINT64_MAX;
    if (offset > out->size)
      return fail(Error::InvalidArgument, "tensor: constant %zu lies outside its segment", index);
    *out = {out->data + static_cast<size_t>(offset), out->size - static_cast<size_t>(offset)};
    return Error::Ok;
  }
  const auto* buffers = program_.flat().constant_buffer();
  if (index >= size_of(buffers)) return fail(Error::InvalidArgument, "tensor: no constant %zu", index);
  const flatbuffers::Vector<uint8_t>* bytes = buffers->Get(static_cast<unsigned>(index))->storage();
  *out = bytes ? Span<const uint8_t>{bytes->data(), bytes->size()} : Span<const uint8_t>{};
  return Error::Ok;
}

// First value of a mutable tensor, from where it starts to the end of its segment.
Error MethodLoader::initial_data(const fb::Tensor& source, Span<const uint8_t>* out) const {
  const uint64_t list =
      source.extra_tensor_info() ? source.extra_tensor_info()->mutable_data_segments_idx() : 0;
  const auto* lists = program_.flat().mutable_data_segments();
  const size_t index = source.data_buffer_idx();
  if (list >= size_of(lists)) return fail(Error::NotFound, "tensor: no initial values in the program");
  const fb::SubsegmentOffsets& entry = *lists->Get(static_cast<unsigned>(list));
  const uint64_t offset = index < size_of(entry.offsets()) ? element64(*entry.offsets(), index) : UINT64_MAX;
  const Error error = program_.segment(entry.segment_index(), out);
  if (error != Error::Ok) return error;
  if (offset > out->size)
    return fail(Error::InvalidProgram, "tensor: initial value %zu lies outside its segment", index);
  *out = {out->data + static_cast<size_t>(offset), out->size - static_cast<size_t>(offset)};
  return Error::Ok;
}

// Gives a tensor its bytes: constant, planned (with or without first value), or none yet.
Error MethodLoader::load_data(const fb::Tensor& source, Tensor* tensor) {
  const bool stored = source.data_buffer_idx() != 0;
  Span<const uint8_t> bytes;
  Error error = Error::Ok;
  if (source.allocation_info()) {
    error = planned_address(*source.allocation_info(), tensor->capacity, &tensor->data);
    if (error == Error::Ok && stored) error = initial_data(source, &bytes);
  } else if (stored) {
    error = constant_data(source.data_buffer_idx(), &bytes);
    tensor->data = const_cast<uint8_t*>(bytes.data);
    tensor->constant = true;
  }
  if (error != Error::Ok) return error;
  if (stored && bytes.size < tensor->capacity) {
    return fail(Error::InvalidArgument, "tensor: needs %zu bytes of data, the program has %zu",
                tensor->capacity, bytes.size);
  }
  if (reinterpret_cast<uintptr_t>(tensor->data) % element_size(tensor->dtype) != 0) {
    return fail(Error::InvalidProgram, "tensor: data is not aligned to its %zu-byte elements",
                element_size(tensor->dtype));
  }
  if (stored && !tensor->constant && tensor->capacity != 0)
    std::memcpy(tensor->data, bytes.data, tensor->capacity);
  return Error::Ok;
}

Error MethodLoader::load_tensor(const fb::Tensor& source, Tensor** out) {
  const auto dtype = static_cast<ScalarType>(source.scalar_type());
  size_t bytes = 0;
  Error error = check_kind(source);
  if (error == Error::Ok) error = check_shape(source, element_size(dtype), &bytes);
  if (error == Error::Ok) error = allocate(1, out);
  if (error != Error::Ok) return error;
  const auto dynamism = static_cast<Dynamism>(source.shape_dynamism());
  const auto rank = static_cast<uint8_t>(source.sizes()->size());
  **out = {nullptr, source.sizes()->data(), source.dim_order()->data(), nullptr, bytes, rank, dtype, dynamism,
           false};
  if (dynamism == Dynamism::Bounded) {
    error = allocate(rank, &(*out)->resizable);
    if (error != Error::Ok) return error;
    std::memcpy((*out)->resizable, source.sizes()->data(), rank * sizeof(int32_t));
    (*out)->sizes = (*out)->resizable;
  }
  return load_data(source, *out);
}

// An input or output that no plan and no kernel places lives in the method's arena.
Error MethodLoader::own_memory(const EValue& value) {
  if (!value.is_tensor() || value.t->data) return Error::Ok;
  value.t->data = memory_.method->allocate(value.t->capacity);
  return value.t->data ? Error::Ok : Error::MemoryAllocationFailed;
}

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// Values of a method: scalars, strings and lists; lists hold pointers to other values.
#include "runtime/core/loader.h"

namespace armdeploy {
namespace {

template <class T>
Error load_span(const flatbuffers::Vector<T>* items, Span<const T>* out) {
  if (!items) return fail(Error::InvalidProgram, "list without items");
  const auto* data = reinterpret_cast<const T*>(items->Data());
  if (reinterpret_cast<uintptr_t>(data) % alignof(T) != 0)
    return fail(Error::InvalidProgram, "list: misaligned");
  *out = {data, items->size()};
  return Error::Ok;
}

Error load_bools(const flatbuffers::Vector<uint8_t>* items, Span<const bool>* out) {
  Span<const uint8_t> bytes;
  const Error error = load_span(items, &bytes);
  if (error != Error::Ok) return error;
  for (const uint8_t byte : bytes) {
    if (byte > 1) return fail(Error::InvalidProgram, "list: a bool of %u", unsigned{byte});
  }
  *out = {reinterpret_cast<const bool*>(bytes.data), bytes.size};
  return Error::Ok;
}

}  // namespace

Error MethodLoader::value_at(int64_t index, EValue** out) const {
  if (index < 0 || static_cast<uint64_t>(index) >= method_.values_.size) {
    return fail(Error::InvalidProgram, "value %lld of %zu", static_cast<long long>(index),
                method_.values_.size);
  }
  *out = &method_.values_[static_cast<size_t>(index)];
  return Error::Ok;
}

Error MethodLoader::load_boxed(const flatbuffers::Vector<int32_t>* items, Tag tag, EValue* out) {
  if (!items) return fail(Error::InvalidProgram, "list without items");
  EValue** list = nullptr;
  Error error = allocate(items->size(), &list);
  for (unsigned i = 0; error == Error::Ok && i < items->size(); ++i) {
    list[i] = nullptr;
    const bool none = tag == Tag::ListOptionalTensor && items->Get(i) == -1;
    if (!none) error = value_at(items->Get(i), &list[i]);
  }
  out->tag = tag;
  out->list = {list, items->size()};
  return error;
}

Error MethodLoader::load_int_list(const flatbuffers::Vector<int64_t>* items, EValue* out) {
  if (!items) return fail(Error::InvalidProgram, "list without items");
  EValue** list = nullptr;
  Error error = allocate(items->size(), &list);
  for (size_t i = 0; error == Error::Ok && i < items->size(); ++i)
    error = value_at(element64(*items, i), &list[i]);
  out->tag = Tag::ListInt;
  out->list = {list, items->size()};
  return error;
}

Error MethodLoader::load_value(const fb::EValue& source, EValue* out) {
  const void* value = source.val();
  if (!value) return fail(Error::InvalidProgram, "no value");
  switch (source.val_type()) {
    case fb::KernelTypes::Null: return Error::Ok;
    case fb::KernelTypes::Int:
      out->i = static_cast<const fb::Int*>(value)->int_val();
      out->tag = Tag::Int;
      return Error::Ok;
    case fb::KernelTypes::Bool:
      out->b = static_cast<const fb::Bool*>(value)->bool_val();
      out->tag = Tag::Bool;
      return Error::Ok;
    case fb::KernelTypes::Double:
      out->d = static_cast<const fb::Double*>(value)->double_val();
      out->tag = Tag::Double;
      return Error::Ok;
    case fb::KernelTypes::Tensor:
      out->tag = Tag::Tensor;
      return load_tensor(*static_cast<const fb::Tensor*>(value), &out->t);
    case fb::KernelTypes::String: {
      const flatbuffers::String* string = static_cast<const fb::String*>(value)->string_val();
      if (!string) return fail(Error::InvalidProgram, "no string");
      out->s = {string->c_str(), string->size()};
      out->tag = Tag::String;
      return Error::Ok;
    }
    case fb::KernelTypes::IntList: return load_int_list(static_cast<const fb::IntList*>(value)->items(), out);
    case fb::KernelTypes::DoubleList:
      out->tag = Tag::ListDouble;
      return load_span(static_cast<const fb::DoubleList*>(value)->items(), &out->doubles);
    case fb::KernelTypes::BoolList:
      out->tag = Tag::ListBool;
      return load_bools(static_cast<const fb::BoolList*>(value)->items(), &out->bools);
    case fb::KernelTypes::TensorList:
      return load_boxed(static_cast<const fb::TensorList*>(value)->items(), Tag::ListTensor, out);
    case fb::KernelTypes::OptionalTensorList:
      return load_boxed(static_cast<const fb::OptionalTensorList*>(value)->items(), Tag::ListOptionalTensor,
                        out);
    default:
      return fail(Error::InvalidProgram, "unknown kind of value %d", static_cast<int>(source.val_type()));
  }
}

// Items of a list must be of its kind: checked once all values are known.
Error MethodLoader::check_list(const EValue& list, size_t index) const {
  const bool tensors = list.tag == Tag::ListTensor || list.tag == Tag::ListOptionalTensor;
  if (!tensors && list.tag != Tag::ListInt) return Error::Ok;
  const Tag item_tag = tensors ? Tag::Tensor : Tag::Int;
  for (const EValue* item : list.list) {
    const bool none = list.tag == Tag::ListOptionalTensor && (!item || item->is_none());
    const bool scalar = !tensors && item->is_scalar();  // a symbolic value may change its kind when computed
    if (!none && !scalar && item->tag != item_tag) {
      return fail(Error::InvalidProgram, "value %zu: a list with an item of another kind", index);
    }
  }
  return Error::Ok;
}

Error MethodLoader::load_values() {
  const size_t count = plan_.values()->size();
  Error error = allocate(count, &method_.values_.data);
  if (error != Error::Ok) return error;
  method_.values_.size = count;
  for (EValue& value : method_.values_) value = EValue();
  for (size_t i = 0; i < count; ++i) {
    error = load_value(*plan_.values()->Get(static_cast<unsigned>(i)), &method_.values_[i]);
    if (error != Error::Ok) return fail(error, "method %s: value %zu cannot be used", method_.name_, i);
  }
  for (size_t i = 0; error == Error::Ok && i < count; ++i) error = check_list(method_.values_[i], i);
  return error;
}

}  // namespace armdeploy

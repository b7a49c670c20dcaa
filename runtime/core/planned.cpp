// SPDX-License-Identifier: Apache-2.0
// Planned memory: one block for every memory id, from the arenas the application gave.
#include "runtime/core/loader.h"

namespace armdeploy {

Error MethodLoader::allocate_planned() {
  if (size_of(plan_.non_const_buffer_device()) != 0) {
    for (const fb::NonConstBufferDevice* device : *plan_.non_const_buffer_device()) {
      if (device->device_type() != fb::DeviceType::CPU) {
        return fail(Error::NotSupported, "method %s: planned memory on another device than the CPU",
                    method_.name_);
      }
    }
  }
  const size_t count = program_.planned_count(method_.name_);
  const Error error = allocate(count, &planned_.data);
  if (error != Error::Ok) return error;
  planned_.size = count;
  for (size_t i = 0; i < count; ++i) {
    Arena* arena = memory_.method;
    if (!memory_.planned.empty())
      arena = memory_.planned[i < memory_.planned.size ? i : memory_.planned.size - 1];
    planned_[i] = arena->allocate(program_.planned_bytes(method_.name_, i));
    if (!planned_[i]) return Error::MemoryAllocationFailed;
  }
  return Error::Ok;
}

Error MethodLoader::planned_address(const fb::AllocationDetails& where, size_t bytes, void** out) const {
  const size_t index = size_t{where.memory_id()} - 1;
  const size_t offset = where.memory_offset_low();
  const size_t size = index < planned_.size ? program_.planned_bytes(method_.name_, index) : 0;
  const bool outside = where.memory_offset_high() != 0 || offset > size || bytes > size - offset;
  if (index >= planned_.size || outside) {
    const Error error = index >= planned_.size ? Error::InvalidArgument : Error::MemoryAllocationFailed;
    return fail(error, "tensor: %zu bytes at offset %zu of memory %zu, which has %zu bytes", bytes, offset,
                index + 1, size);
  }
  *out = static_cast<uint8_t*>(planned_[index]) + offset;
  return Error::Ok;
}

}  // namespace armdeploy

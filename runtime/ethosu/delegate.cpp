// SPDX-License-Identifier: Apache-2.0
#include "runtime/ethosu/delegate.h"

#include <cstring>
#include <new>

#include "runtime/ethosu/driver.h"
#include "runtime/ethosu/stream.h"
#include "runtime/ethosu/velabin.h"
#include "runtime/platform/cache.h"

namespace armdeploy::ethosu {
namespace {

// Regions of a compiled network, by the number that the command stream uses.
enum : uint32_t { kWeightRegion, kScratchRegion, kFastRegion, kInputRegion, kOutputRegion };

struct Handle {
  VelaBin binary;
  Stream stream;
  uint32_t input_bytes;   // extent of the input region; 0 when inputs live in scratch
  uint32_t output_bytes;  // of the output region
  bool uses_fast_scratch;
};

// What a compiled network gets for a fast scratch in firmware that has no memory set aside: the size that
// ExecuTorch compiles for. A VelaBin does not say how much it needs.
constexpr size_t kUsualFastScratch = 0x60000;

// Checks where a list of tensors lies; `extent`: of their own region, if they have one.
Error check_places(const TensorList& tensors, const char* what, uint32_t scratch, uint32_t own,
                   uint32_t* extent) {
  *extent = 0;
  for (size_t index = 0; index < tensors.count; ++index) {
    const TensorSpec spec = tensors[index];
    const uint32_t end = spec.offset + spec.bytes;
    if (spec.region == own) {
      *extent = end > *extent ? end : *extent;
    } else if (spec.region != kScratchRegion) {
      return fail(Error::NotSupported, "ethos-u: %s %zu is in region %u", what, index,
                  static_cast<unsigned>(spec.region));
    } else if (end > scratch) {
      return fail(Error::InvalidProgram, "ethos-u: %s %zu ends at byte %u of a scratch of %u", what, index,
                  static_cast<unsigned>(end), static_cast<unsigned>(scratch));
    }
  }
  return Error::Ok;
}

// A region without memory would have the NPU read and write at address 0.
Error check_regions(Handle* handle) {
  const uint32_t used = handle->stream.regions();
  uint32_t there = 1u << kFastRegion;
  if (!handle->binary.weight_data.empty()) there |= 1u << kWeightRegion;
  if (handle->binary.scratch_size != 0) there |= 1u << kScratchRegion;
  if (handle->input_bytes != 0) there |= 1u << kInputRegion;
  if (handle->output_bytes != 0) there |= 1u << kOutputRegion;
  handle->uses_fast_scratch = (used >> kFastRegion & 1) != 0;
  if ((used & ~there) != 0) {
    return fail(Error::InvalidProgram,
                "ethos-u: the command stream uses regions %02x, there is memory for %02x",
                static_cast<unsigned>(used), static_cast<unsigned>(there));
  }
  return Error::Ok;
}

Error read_blob(BackendContext& context, Span<const uint8_t> blob, Handle* handle) {
  VelaBin& binary = handle->binary;
  if (Error error = VelaBin::parse(blob, context.program, &binary); error != Error::Ok) return error;
  if (Error error = Stream::parse(binary.cmd_data, &handle->stream); error != Error::Ok) return error;
  if (reinterpret_cast<uintptr_t>(handle->stream.commands.data) % kAlign != 0) {
    return fail(Error::DelegateInvalidCompatibility,
                "ethos-u: the register commands are not at a multiple of 16");
  }
  const uint32_t scratch = binary.scratch_size;
  Error error = check_places(binary.inputs, "input", scratch, kInputRegion, &handle->input_bytes);
  if (error != Error::Ok) return error;
  error = check_places(binary.outputs, "output", scratch, kOutputRegion, &handle->output_bytes);
  return error != Error::Ok ? error : check_regions(handle);
}

Error check_argument(const EValue& value, const TensorSpec& spec, const char* what, size_t index) {
  if (!value.is_tensor() || value.t->data == nullptr) {
    return fail(Error::InvalidArgument, "ethos-u: %s %zu is not a tensor with memory", what, index);
  }
  const Tensor& tensor = *value.t;
  if (element_size(tensor.dtype) != spec.elem_size || tensor.nbytes() != spec.bytes) {
    return fail(Error::InvalidArgument, "ethos-u: %s %zu has %zu bytes of %zu, the compiled network %u of %u",
                what, index, tensor.nbytes(), element_size(tensor.dtype), static_cast<unsigned>(spec.bytes),
                static_cast<unsigned>(spec.elem_size));
  }
  return Error::Ok;
}

Error check_arguments(const Handle& handle, Span<EValue*> args) {
  const TensorList& inputs = handle.binary.inputs;
  const TensorList& outputs = handle.binary.outputs;
  if (args.size != inputs.count + outputs.count) {
    return fail(Error::InvalidArgument,
                "ethos-u: %zu arguments, the compiled network has %zu inputs and %zu outputs", args.size,
                inputs.count, outputs.count);
  }
  for (size_t index = 0; index < args.size; ++index) {
    const bool input = index < inputs.count;
    const size_t number = input ? index : index - inputs.count;
    const TensorSpec spec = input ? inputs[number] : outputs[number];
    Error error = check_argument(*args[index], spec, input ? "input" : "output", number);
    if (error != Error::Ok) return error;
    if (!input && args[index]->t->constant) {
      return fail(Error::InvalidArgument, "ethos-u: output %zu is a constant of the program", number);
    }
  }
  return Error::Ok;
}

// A region of inputs or outputs of its own: the one tensor's memory itself where that will do, else a copy's.
Error place_region(BackendContext& context, const TensorList& tensors, EValue* const* values, uint32_t extent,
                   const void** base) {
  if (extent == 0) return Error::Ok;
  void* own = values[0]->t->data;
  if (tensors.count == 1 && tensors[0].offset == 0 && reinterpret_cast<uintptr_t>(own) % kAlign == 0) {
    *base = own;
    return Error::Ok;
  }
  *base = context.temp.allocate(extent, kAlign);
  return *base == nullptr ? Error::MemoryAllocationFailed : Error::Ok;
}

// The fast scratch: memory set aside for it, or a part of the temp arena.
Error place_fast_scratch(BackendContext& context, const void** base) {
  if (context.fast != nullptr) {
    *base = context.fast->base() + context.fast->used();
    return Error::Ok;
  }
  *base = context.temp.allocate(kUsualFastScratch, kAlign);
  return *base == nullptr ? Error::MemoryAllocationFailed : Error::Ok;
}

Error place(BackendContext& context, const Handle& handle, Span<EValue*> args, Job* job) {
  const VelaBin& binary = handle.binary;
  void* scratch = context.temp.allocate(binary.scratch_size, kAlign);
  if (scratch == nullptr) return Error::MemoryAllocationFailed;
  job->commands = handle.stream.commands;
  job->bases[kWeightRegion] = binary.weight_data.data;
  job->bases[kScratchRegion] = scratch;
  if (handle.uses_fast_scratch) {
    if (Error error = place_fast_scratch(context, &job->bases[kFastRegion]); error != Error::Ok) return error;
  }
  EValue* const* outputs = args.data + binary.inputs.count;
  Error error =
      place_region(context, binary.inputs, args.data, handle.input_bytes, &job->bases[kInputRegion]);
  if (error != Error::Ok) return error;
  return place_region(context, binary.outputs, outputs, handle.output_bytes, &job->bases[kOutputRegion]);
}

// Where the NPU reads or writes a tensor.
uint8_t* address(const Job& job, const TensorSpec& spec) {
  return static_cast<uint8_t*>(const_cast<void*>(job.bases[spec.region])) + spec.offset;
}

void copy_in(const Handle& handle, const Job& job, Span<EValue*> args) {
  const TensorList& inputs = handle.binary.inputs;
  for (size_t index = 0; index < inputs.count; ++index) {
    const TensorSpec spec = inputs[index];
    uint8_t* to = address(job, spec);
    if (to != args[index]->t->data) memcpy(to, args[index]->t->data, spec.bytes);
    clean_data(to, spec.bytes);
  }
}

void copy_out(const Handle& handle, const Job& job, Span<EValue*> args) {
  const TensorList& outputs = handle.binary.outputs;
  for (size_t index = 0; index < outputs.count; ++index) {
    const TensorSpec spec = outputs[index];
    Tensor& tensor = *args[handle.binary.inputs.count + index]->t;
    const uint8_t* from = address(job, spec);
    invalidate_data(from, spec.bytes);
    if (from != tensor.data) memcpy(tensor.data, from, spec.bytes);
  }
}

}  // namespace

Error init_delegate(BackendContext& context, Span<const uint8_t> blob, Span<const CompileSpec>,
                    void** result) {
  if (identity().config == 0) {
    if (Error error = initialise(); error != Error::Ok) return error;
  }
  void* place = context.method.allocate(sizeof(Handle), alignof(Handle));
  if (place == nullptr) return Error::MemoryAllocationFailed;
  Handle* handle = new (place) Handle();
  if (Error error = read_blob(context, blob, handle); error != Error::Ok) return error;
  if (Error error = require_compatible(handle->stream); error != Error::Ok) return error;
  clean_data(blob.data, blob.size);
  clean_data(handle->binary.cmd_data.data, handle->binary.cmd_data.size);
  clean_data(handle->binary.weight_data.data, handle->binary.weight_data.size);
  *result = handle;
  return Error::Ok;
}

Error execute_delegate(BackendContext& context, void* opaque, Span<EValue*> args) {
  const Handle& handle = *static_cast<const Handle*>(opaque);
  Job job;
  if (Error error = check_arguments(handle, args); error != Error::Ok) return error;
  if (Error error = place(context, handle, args, &job); error != Error::Ok) return error;
  // Lines that the CPU has modified there earlier must not be written back under the NPU's hands.
  clean_data(job.bases[kScratchRegion], handle.binary.scratch_size);
  copy_in(handle, job, args);
  if (Error error = run(job); error != Error::Ok) return error;
  copy_out(handle, job, args);
  return Error::Ok;
}

}  // namespace armdeploy::ethosu

// SPDX-License-Identifier: Apache-2.0
#include "runtime/ethosu/velabin.h"

#include <cstddef>
#include <cstring>

#include "runtime/ethosu/registers.h"

namespace armdeploy::ethosu {
namespace {

constexpr size_t kNameBytes = 16;
constexpr size_t kHeaderBytes = 32;  // name, u32 size, u8 external flag, reserved
constexpr size_t kTensorBytes = 36;  // nine i32
constexpr size_t kKeyBytes = 64;     // SHA-256 in hexadecimal
enum : size_t {
  kCommands,
  kScratch,
  kInputs,
  kOutputs,
  kRequiredKinds,
  kWeights = kRequiredKinds,
  kBlockKinds
};
constexpr const char* kBlocks[kBlockKinds] = {"cmd_data", "scratch_size", "inputs", "outputs", "weight_data"};
constexpr const char* kStart = "vela_bin_stream";
constexpr const char* kEnd = "vela_end_stream";

uint32_t load32(const uint8_t* bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

// A block: its name, data in the blob, and where the next header is.
struct Block {
  char name[kNameBytes + 1];
  Span<const uint8_t> data;
  bool external;
  size_t next;
};

Error read_block(Span<const uint8_t> blob, size_t offset, Block* out) {
  if (blob.size - offset < kHeaderBytes) {
    return fail(Error::InvalidProgram, "VelaBin (byte %zu): ends before its end mark", offset);
  }
  const uint8_t* header = blob.data + offset;
  memcpy(out->name, header, kNameBytes);
  out->name[kNameBytes] = '\0';
  const size_t size = load32(header + kNameBytes);
  const size_t room = blob.size - offset - kHeaderBytes;
  if (size > room) {
    return fail(Error::InvalidProgram, "VelaBin (byte %zu): block \"%s\" has %zu bytes, %zu are left", offset,
                out->name, size, room);
  }
  const size_t padded = (size + kAlign - 1) / kAlign * kAlign;
  out->data = {header + kHeaderBytes, size};
  out->external = header[kNameBytes + 4] != 0;
  out->next = offset + kHeaderBytes + (padded < room ? padded : room);
  return Error::Ok;
}

Error resolve_external(const Program& program, Block* block) {
  char key[kKeyBytes + 1];
  if (block->data.size != kKeyBytes) {
    return fail(Error::InvalidProgram, "VelaBin: external block \"%s\" has a key of %zu bytes", block->name,
                block->data.size);
  }
  memcpy(key, block->data.data, kKeyBytes);
  key[kKeyBytes] = '\0';
  block->data = program.named_data(key);
  if (block->data.data == nullptr) {
    return fail(Error::NotFound, "VelaBin: external block \"%s\" is not in the program's named data",
                block->name);
  }
  return Error::Ok;
}

size_t block_kind(const char* name) {
  size_t kind = 0;
  while (kind < kBlockKinds && strcmp(name, kBlocks[kind]) != 0) ++kind;
  return kind;
}

Error require_aligned(const char* name, const uint8_t* data) {
  if (reinterpret_cast<uintptr_t>(data) % kAlign != 0) {
    return fail(Error::DelegateInvalidCompatibility, "VelaBin: %s at %p is not at a multiple of 16", name,
                static_cast<const void*>(data));
  }
  return Error::Ok;
}

// Bytes of a tensor; false when they do not fit 32 bits or a field is out of range.
bool tensor_bytes(const TensorSpec& spec, uint32_t* bytes) {
  uint32_t count = spec.elem_size;
  for (uint32_t dim : spec.dims) {
    if (dim > INT32_MAX || __builtin_mul_overflow(count, dim, &count)) return false;
  }
  uint32_t end = 0;
  *bytes = count;
  return spec.elem_size != 0 && spec.region < kBasePointers &&
         !__builtin_add_overflow(spec.offset, count, &end);
}

}  // namespace

TensorSpec TensorList::operator[](size_t index) const {
  TensorSpec spec;
  static_assert(offsetof(TensorSpec, bytes) == kTensorBytes, "the packed fields come first, in order");
  memcpy(&spec, packed_ + index * kTensorBytes, kTensorBytes);
  if (!tensor_bytes(spec, &spec.bytes)) spec.bytes = 0;
  return spec;
}

Error TensorList::check(Span<const uint8_t> block, const char* name) {
  const size_t listed = block.size < 4 ? SIZE_MAX : load32(block.data);
  if (listed > block.size / kTensorBytes || block.size != 4 + listed * kTensorBytes) {
    return fail(Error::InvalidProgram, "VelaBin: list \"%s\" in %zu bytes is damaged", name, block.size);
  }
  count = listed;
  packed_ = block.data + 4;
  for (size_t index = 0; index < count; ++index) {
    TensorSpec spec = (*this)[index];
    if (!tensor_bytes(spec, &spec.bytes)) {
      return fail(Error::InvalidProgram, "VelaBin: tensor %zu of \"%s\" is impossible", index, name);
    }
  }
  return Error::Ok;
}

Error VelaBin::keep(size_t kind, Span<const uint8_t> data) {
  switch (kind) {
    case kCommands:
      cmd_data = data;
      return require_aligned(kBlocks[kind], data.data);
    case kWeights:
      weight_data = data;
      return require_aligned(kBlocks[kind], data.data);
    case kScratch:
      if (data.size != 4)
        return fail(Error::InvalidProgram, "VelaBin: scratch_size has %zu bytes", data.size);
      scratch_size = load32(data.data);
      return Error::Ok;
    case kInputs:
      return inputs.check(data, kBlocks[kind]);
    default:
      return outputs.check(data, kBlocks[kind]);
  }
}

Error VelaBin::parse(Span<const uint8_t> blob, const Program& program, VelaBin* out) {
  *out = VelaBin();
  Block block;
  uint32_t seen = 0;
  for (size_t offset = 0;; offset = block.next) {
    if (Error error = read_block(blob, offset, &block); error != Error::Ok) return error;
    if (offset == 0 && strcmp(block.name, kStart) != 0) {
      return fail(Error::InvalidProgram, "VelaBin: starts with \"%s\", not \"%s\"", block.name, kStart);
    }
    if (strcmp(block.name, kEnd) == 0) break;
    const size_t kind = block_kind(block.name);
    if (kind == kBlockKinds) continue;  // a newer exporter's addition, or the start mark
    if (seen >> kind & 1)
      return fail(Error::InvalidProgram, "VelaBin: block \"%s\" occurs twice", block.name);
    seen |= 1u << kind;
    if (block.external) {
      if (Error error = resolve_external(program, &block); error != Error::Ok) return error;
    }
    if (Error error = out->keep(kind, block.data); error != Error::Ok) return error;
  }
  for (size_t kind = 0; kind < kRequiredKinds; ++kind) {
    if (!(seen >> kind & 1)) return fail(Error::InvalidProgram, "VelaBin: no block \"%s\"", kBlocks[kind]);
  }
  return Error::Ok;
}

}  // namespace armdeploy::ethosu

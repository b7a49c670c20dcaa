// SPDX-License-Identifier: Apache-2.0
#include "runtime/core/program.h"

#include "runtime/core/schema.h"

namespace armdeploy {
namespace {

// The extended header of a .pte, after the root offset and the file identifier.
constexpr size_t kHeaderOffset = 8;
constexpr size_t kHeaderMagicSize = 4;
constexpr uint32_t kHeaderLeast = 24;     // magic, length, program size, segment base
constexpr uint32_t kHeaderWithData = 32;  // and the size of all segments
constexpr size_t kFileLeast = 64;         // as ExecuTorch has it

struct Layout {
  uint64_t program_size;
  uint64_t segment_base;  // 0: no segments
  uint64_t segment_size;  // 0: not known
};

uint64_t read_bytes(const uint8_t* at, int count) {
  uint64_t value = 0;
  for (int i = count; i > 0; --i) value = (value << 8) | at[i - 1];
  return value;
}

Error read_layout(Span<const uint8_t> file, Layout* out) {
  *out = {file.size, 0, 0};
  const uint8_t* header = file.data + kHeaderOffset;
  if (std::memcmp(header, "eh00", kHeaderMagicSize) != 0) return Error::Ok;
  const auto length = static_cast<uint32_t>(read_bytes(header + 4, 4));
  if (length < kHeaderLeast) {
    return fail(Error::InvalidProgram, "program: extended header of %u bytes; at least %u",
                static_cast<unsigned>(length), static_cast<unsigned>(kHeaderLeast));
  }
  out->program_size = read_bytes(header + 8, 8);
  out->segment_base = read_bytes(header + 16, 8);
  if (length >= kHeaderWithData) out->segment_size = read_bytes(header + 24, 8);
  return Error::Ok;
}

// Whether `size` bytes at `offset` lie within `limit`.
bool within(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

Error check_layout(const Layout& layout, size_t file_size) {
  const bool apart = layout.segment_base == 0 || layout.segment_base >= layout.program_size;
  const bool whole = within(layout.segment_base, layout.segment_size, file_size);
  if (!apart || !whole || layout.program_size > file_size) {
    const bool cut = apart && whole;
    return fail(cut ? Error::InvalidArgument : Error::InvalidProgram,
                "program: header says %llu bytes, segments %llu at %llu; the file has %zu",
                static_cast<unsigned long long>(layout.program_size),
                static_cast<unsigned long long>(layout.segment_size),
                static_cast<unsigned long long>(layout.segment_base), file_size);
  }
  return Error::Ok;
}

Error check_segments(const fb::Program& program, size_t available) {
  for (size_t i = 0; i < size_of(program.segments()); ++i) {
    const fb::DataSegment& segment = *program.segments()->Get(static_cast<unsigned>(i));
    if (!within(segment.offset(), segment.size(), available)) {
      return fail(Error::InvalidProgram, "program: segment %zu lies outside the file", i);
    }
  }
  return Error::Ok;
}

Error check_methods(const fb::Program& program) {
  for (size_t i = 0; i < size_of(program.execution_plan()); ++i) {
    const fb::ExecutionPlan& plan = *program.execution_plan()->Get(static_cast<unsigned>(i));
    if (!plan.name() || !plan.values() || !plan.inputs() || !plan.outputs() ||
        !plan.non_const_buffer_sizes() || !plan.delegates()) {
      return fail(Error::InvalidProgram, "program: method %zu lacks a field", i);
    }
  }
  return Error::Ok;
}

Error verify(Span<const uint8_t> bytes) {
  if (bytes.size < kHeaderOffset || !fb::ProgramBufferHasIdentifier(bytes.data)) {
    return fail(Error::InvalidProgram, "program: not a .pte of schema %s", fb::ProgramIdentifier());
  }
  flatbuffers::Verifier verifier(bytes.data, bytes.size);
  if (!fb::VerifyProgramBuffer(verifier)) return fail(Error::InvalidProgram, "program: truncated or damaged");
  return Error::Ok;
}

}  // namespace

Error Program::load(Span<const uint8_t> file, Program* out) {
  if (reinterpret_cast<uintptr_t>(file.data) % kProgramAlign != 0) {
    return fail(Error::InvalidArgument, "program: address %p is not a multiple of %zu",
                static_cast<const void*>(file.data), kProgramAlign);
  }
  if (file.size < kFileLeast) return fail(Error::InvalidArgument, "program: cut to %zu bytes", file.size);
  if (file.size >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return fail(Error::InvalidProgram, "program: larger than 2 GiB");
  Layout layout;
  Error error = read_layout(file, &layout);
  if (error == Error::Ok) error = check_layout(layout, file.size);
  if (error != Error::Ok) return error;
  const auto program_size = static_cast<size_t>(layout.program_size);
  error = verify({file.data, program_size});
  if (error != Error::Ok) return error;

  const fb::Program& flat = *fb::GetProgram(file.data);
  const auto base = static_cast<size_t>(layout.segment_base);
  const size_t available = base == 0                  ? 0
                           : layout.segment_size == 0 ? file.size - base
                                                      : static_cast<size_t>(layout.segment_size);
  error = check_segments(flat, available);
  if (error == Error::Ok) error = check_methods(flat);
  if (error != Error::Ok) return error;
  out->flat_ = &flat;
  out->segments_ = {file.data + base, available};
  out->size_ = base == 0 ? program_size : base + available;
  return Error::Ok;
}

size_t Program::method_count() const { return size_of(flat_->execution_plan()); }

const char* Program::method_name(size_t index) const {
  return flat_->execution_plan()->Get(static_cast<unsigned>(index))->name()->c_str();
}

const fb::ExecutionPlan* Program::plan(const char* name) const {
  for (size_t i = 0; i < method_count(); ++i) {
    if (std::strcmp(method_name(i), name) == 0) return flat_->execution_plan()->Get(static_cast<unsigned>(i));
  }
  return nullptr;
}

// Entry 0 of non_const_buffer_sizes is reserved.
size_t Program::planned_count(const char* method) const {
  const fb::ExecutionPlan* found = plan(method);
  const size_t count = found ? found->non_const_buffer_sizes()->size() : 0;
  return count == 0 ? 0 : count - 1;
}

size_t Program::planned_bytes(const char* method, size_t index) const {
  const auto bytes = static_cast<uint64_t>(element64(*plan(method)->non_const_buffer_sizes(), index + 1));
  return bytes > SIZE_MAX ? SIZE_MAX : static_cast<size_t>(bytes);  // a negative number counts as very large
}

Error Program::segment(size_t index, Span<const uint8_t>* out) const {
  if (index >= size_of(flat_->segments())) {
    return fail(Error::NotFound, "program: segment %zu of %zu", index, size_of(flat_->segments()));
  }
  const fb::DataSegment& found = *flat_->segments()->Get(static_cast<unsigned>(index));
  *out = {segments_.data + static_cast<size_t>(found.offset()), static_cast<size_t>(found.size())};
  return Error::Ok;
}

Span<const uint8_t> Program::named_data(const char* key) const {
  Span<const uint8_t> bytes;
  for (size_t i = 0; i < size_of(flat_->named_data()); ++i) {
    const fb::NamedData& entry = *flat_->named_data()->Get(static_cast<unsigned>(i));
    if (entry.key() && std::strcmp(entry.key()->c_str(), key) == 0) {
      if (segment(entry.segment_index(), &bytes) != Error::Ok) return {};
      break;
    }
  }
  return bytes;
}

}  // namespace armdeploy

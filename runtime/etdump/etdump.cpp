// SPDX-License-Identifier: Apache-2.0
#include "runtime/etdump/etdump.h"

#include <cstring>

namespace armdeploy {

EtDump::EtDump(Arena& arena, size_t bytes, Clock clock) : clock_(clock) {
  uint8_t* memory = static_cast<uint8_t*>(arena.allocate(bytes & ~size_t{15}));
  if (memory == nullptr) return;
  room_ = bytes & ~size_t{15};
  records_ = reinterpret_cast<Record*>(memory);
  names_end_ = reinterpret_cast<Name*>(memory + room_);
}

EventHook EtDump::hook() {
  EventHook hook;
  hook.on_event = on_event;
  hook.context = this;
  return hook;
}

void EtDump::on_event(void* self, const Event& event) {
  EtDump& dump = *static_cast<EtDump*>(self);
  if (event.begin) {
    if (event.kind == EventKind::MethodExecute) dump.new_block_ = true;
    dump.begin();
  } else {
    dump.end(event);
  }
}

void EtDump::begin() {
  if (depth_ < kDepth) started_[depth_] = clock_();
  depth_++;
}

void EtDump::end(const Event& event) {
  const uint64_t now = clock_();
  if (depth_ == 0) return;
  depth_--;
  uint16_t name = 0;
  if (depth_ >= kDepth || !intern(event, &name) || room_ < sizeof(Record)) {
    dropped_++;
    return;
  }
  room_ -= sizeof(Record);
  records_[record_count_++] = {started_[depth_], now,       event.chain, event.instruction, name,
                               event.kind,       new_block_};
  new_block_ = false;
}

bool EtDump::intern(const Event& event, uint16_t* index) {
  for (size_t i = 0; i < name_count_; i++) {
    *index = static_cast<uint16_t>(i);
    if (name(i).text == event.name && name(i).kind == event.kind) return true;
  }
  if (room_ < sizeof(Name) || name_count_ > UINT16_MAX) return false;
  room_ -= sizeof(Name);
  *index = static_cast<uint16_t>(name_count_++);
  *(names_end_ - name_count_) = {event.name, event.kind};
  return true;
}

// Writes the FlatBuffer from front to back: tables point only forwards, so every position is known from the
// counts. Order: size, root, identifier, vtables, ETDump, runs, events, profile events, strings.
class EtDumpWriter {
 public:
  explicit EtDumpWriter(const EtDump& dump) : dump_(dump) {
    for (size_t i = 0; i < dump.record_count_; i++) {
      runs_ += i == 0 || dump.records_[i].opens_block ? 1u : 0u;
      events_ += event_count(dump.records_[i].kind);
    }
    run_vector_ = kDump + kDumpSize;
    run_tables_ = run_vector_ + 4 + 4 * runs_;
    event_vectors_ = run_tables_ + kRunSize * runs_;
    event_tables_ = event_vectors_ + 4 * runs_ + 4 * events_;
    profiles_ = (event_tables_ + kEventSize * events_ + 7) & ~size_t{7};
    strings_ = profiles_ + kProfileSize * events_;
    size_ = strings_ + 2 * kBlockString;
    for (size_t i = 0; i < dump.name_count_; i++) size_ += 2 * string_size(i);
  }

  size_t size() const {
    return size_;
  }

  void write(uint8_t* out) {
    out_ = out;
    memset(out, 0, size_);
    u32(0, size_ - 4);
    u32(4, kDump - 4);
    memcpy(out + 8, "ED00", 4);
    memcpy(out + kVtables, kVtableBytes, sizeof(kVtableBytes));
    table(kDump, kDumpVtable);
    point(kDump + 8, run_vector_);
    u32(run_vector_, runs_);
    write_strings();
    write_runs();
  }

 private:
  // Each vtable: its size, the table's size, the place of each field (0: absent), padded to 4 bytes.
  static constexpr uint16_t kVtableBytes[] = {
      8,  12, 4, 8,                       // ETDump: version, run_data
      12, 12, 4, 0, 0,  8,                // RunData: name, bundled_input_index, allocators, events
      6,  8,  4, 0,                       // Event: profile_event
      20, 32, 4, 8, 12, 0, 0, 0, 16, 24,  // ProfileEvent: name, chain_index, instruction_id, …, times
      20, 32, 0, 8, 12, 0, 4, 0, 16, 24,  // of a delegate: delegate_debug_id_str in the name's place
  };
  static constexpr size_t kVtables = 12;
  static constexpr size_t kDumpVtable = kVtables;
  static constexpr size_t kRunVtable = kDumpVtable + 8;
  static constexpr size_t kEventVtable = kRunVtable + 12;
  static constexpr size_t kProfileVtable = kEventVtable + 8;
  static constexpr size_t kDelegateVtable = kProfileVtable + 20;
  static constexpr size_t kDump = kVtables + sizeof(kVtableBytes);
  static constexpr size_t kDumpSize = 12;
  static constexpr size_t kRunSize = 12;
  static constexpr size_t kEventSize = 8;
  static constexpr size_t kProfileSize = 32;
  static constexpr size_t kBlockString = 12;  // "Default", "Execute": length, 7 characters, terminator

  // A kernel and a delegate are two events: the call as a whole, and the work inside.
  static size_t event_count(EventKind kind) {
    return kind == EventKind::Kernel || kind == EventKind::Delegate ? 2 : 1;
  }

  // The event around the work, or the only one.
  static const char* call_name(EventKind kind) {
    switch (kind) {
      case EventKind::MethodLoad:
        return "Method::init";
      case EventKind::DelegateInit:
        return "BackendDelegate::Init";
      case EventKind::MethodExecute:
        return "Method::execute";
      case EventKind::Kernel:
        return "OPERATOR_CALL";
      case EventKind::Delegate:
        return "DELEGATE_CALL";
      case EventKind::Move:
        return "MOVE_CALL";
      case EventKind::JumpFalse:
        return "JF_CALL";
      default:
        return "FREE_CALL";
    }
  }

  static const char* without_namespace(const char* text) {
    const char* colon = strchr(text, ':');
    return colon != nullptr && colon[1] == ':' ? colon + 2 : text;
  }

  // Room for either string of a name: the longest is a prefix or suffix with the text.
  size_t string_size(size_t index) const {
    return (4 + 24 + strlen(dump_.name(index).text) + 1 + 3) & ~size_t{3};
  }

  void u32(size_t at, size_t value) {
    const uint32_t bits = static_cast<uint32_t>(value);
    memcpy(out_ + at, &bits, sizeof(bits));
  }
  void u64(size_t at, uint64_t value) {
    memcpy(out_ + at, &value, sizeof(value));
  }
  void point(size_t at, size_t target) {
    u32(at, target - at);
  }
  void table(size_t at, size_t vtable) {
    u32(at, at - vtable);
  }

  void string(size_t at, const char* prefix, const char* text, const char* suffix) {
    const size_t lengths[] = {strlen(prefix), strlen(text), strlen(suffix)};
    const char* parts[] = {prefix, text, suffix};
    u32(at, lengths[0] + lengths[1] + lengths[2]);
    at += 4;
    for (size_t k = 0; k < 3; at += lengths[k++]) memcpy(out_ + at, parts[k], lengths[k]);
  }

  void write_strings() {
    string(strings_, "", "Default", "");
    string(strings_ + kBlockString, "", "Execute", "");
    size_t at = strings_ + 2 * kBlockString;
    for (size_t i = 0; i < dump_.name_count_; i++) {
      const EtDump::Name& name = dump_.name(i);
      string(at, "", call_name(name.kind), "");
      at += string_size(i);
      if (name.kind == EventKind::Kernel) string(at, "native_call_", without_namespace(name.text), "");
      if (name.kind == EventKind::Delegate) string(at, "", name.text, "::execute()");
      at += string_size(i);
    }
  }

  size_t string_at(size_t index, bool inner) const {
    size_t at = strings_ + 2 * kBlockString;
    for (size_t i = 0; i < index; i++) at += 2 * string_size(i);
    return at + (inner ? string_size(index) : 0);
  }

  void write_runs() {
    size_t record = 0;
    for (size_t run = 0; run < runs_; run++) {
      const size_t at = run_tables_ + run * kRunSize;
      const size_t vector = event_vectors_ + 4 * run + 4 * event_;
      const bool execute = dump_.records_[record].opens_block;
      point(run_vector_ + 4 + 4 * run, at);
      table(at, kRunVtable);
      point(at + 4, strings_ + (execute ? kBlockString : 0));
      point(at + 8, vector);
      const size_t first = event_;
      do {
        write_record(dump_.records_[record++], vector + 4, first);
      } while (record < dump_.record_count_ && !dump_.records_[record].opens_block);
      u32(vector, event_ - first);
    }
  }

  void write_record(const EtDump::Record& record, size_t entries, size_t first) {
    if (event_count(record.kind) == 2) write_event(record, true, entries + 4 * (event_ - first));
    write_event(record, false, entries + 4 * (event_ - first));
  }

  void write_event(const EtDump::Record& record, bool inner, size_t entry) {
    const size_t at = event_tables_ + event_ * kEventSize;
    const size_t profile = profiles_ + event_ * kProfileSize;
    const bool instruction = record.kind >= EventKind::Kernel;
    point(entry, at);
    table(at, kEventVtable);
    point(at + 4, profile);
    table(profile, inner && record.kind == EventKind::Delegate ? kDelegateVtable : kProfileVtable);
    point(profile + 4, string_at(record.name, inner));
    u32(profile + 8, instruction ? record.chain : UINT32_MAX);
    u32(profile + 12, instruction ? record.instruction : UINT32_MAX);
    u64(profile + 16, record.start);
    u64(profile + 24, record.end);
    event_++;
  }

  const EtDump& dump_;
  uint8_t* out_ = nullptr;
  size_t runs_ = 0;
  size_t events_ = 0;
  size_t event_ = 0;  // events written so far
  size_t run_vector_;
  size_t run_tables_;
  size_t event_vectors_;
  size_t event_tables_;
  size_t profiles_;
  size_t strings_;
  size_t size_;
};

Error EtDump::finish(Arena& arena, Span<const uint8_t>* out) const {
  EtDumpWriter writer(*this);
  uint8_t* bytes = static_cast<uint8_t*>(arena.allocate(writer.size()));
  if (bytes == nullptr) return Error::MemoryAllocationFailed;
  writer.write(bytes);
  *out = {bytes, writer.size()};
  return Error::Ok;
}

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// Records what a method does (its event hook) and gives it back as an ETDump, which executorch.devtools
// reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/arena.h"
#include "runtime/core/error.h"
#include "runtime/core/event.h"
#include "runtime/core/span.h"

namespace armdeploy {

// Events have ExecuTorch's names: "Method::init" and "BackendDelegate::Init" in a block called "Default",
// then a block "Execute" for every inference with "native_call_add.out" and "OPERATOR_CALL" of each kernel,
// "EthosUBackend::execute()" (the delegate's debug id) and "DELEGATE_CALL" of each delegate, "MOVE_CALL",
// "JF_CALL", "FREE_CALL" and "Method::execute".
class EtDump {
 public:
  using Clock = uint64_t (*)();  // any unit; the reader of the dump is told which

  // Takes `bytes` of `arena` for its records (32 bytes an event, 16 a name). Nothing is recorded when the
  // arena has no such room; what does not fit any more is counted in dropped().
  EtDump(Arena& arena, size_t bytes, Clock clock);

  // The hook for MethodMemory::events. The dump must outlive the method.
  EventHook hook();

  size_t recorded() const {
    return record_count_;
  }
  size_t dropped() const {
    return dropped_;
  }

  // The whole dump as bytes, from `arena`. MemoryAllocationFailed when they do not fit.
  Error finish(Arena& arena, Span<const uint8_t>* out) const;

 private:
  friend class EtDumpWriter;

  struct Record {
    uint64_t start;
    uint64_t end;
    uint32_t chain;
    uint32_t instruction;
    uint16_t name;
    EventKind kind;
    bool opens_block;  // the first event of an inference
  };
  struct Name {
    const char* text;
    EventKind
        kind;  // with the text it gives the string: "aten::add.out" of a Kernel is "native_call_add.out"
  };

  static void on_event(void* self, const Event& event);
  void begin();
  void end(const Event& event);
  bool intern(const Event& event, uint16_t* index);
  const Name& name(size_t index) const {
    return *(names_end_ - 1 - index);
  }

  static constexpr size_t kDepth = 8;  // method, instruction, and what a delegate adds

  Record* records_ = nullptr;
  Name* names_end_ = nullptr;  // names grow downwards, records upwards
  size_t room_ = 0;            // bytes between them
  size_t record_count_ = 0;
  size_t name_count_ = 0;
  size_t dropped_ = 0;
  size_t depth_ = 0;
  uint64_t started_[kDepth] = {};
  bool new_block_ = false;
  Clock clock_;
};

// Prints `dump` as base64 between the lines that ExecuTorch's runner uses for it on a console without files
// ("#[RUN THIS]" … "#[END]"). `put` gets text in pieces.
void print_base64(Span<const uint8_t> dump, void (*put)(void* context, const char* text, size_t size),
                  void* context);

}  // namespace armdeploy

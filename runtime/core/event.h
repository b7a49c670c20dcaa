// SPDX-License-Identifier: Apache-2.0
// What a method tells a profiler: begin and end of everything that takes time.
#pragma once

#include <cstdint>

namespace armdeploy {

enum class EventKind : uint8_t {
  MethodLoad,
  DelegateInit,
  MethodExecute,
  Kernel,
  Delegate,
  Move,
  JumpFalse,
  Free,
};

struct Event {
  EventKind kind;
  bool begin;            // false: it ended
  uint32_t chain;        // of the instruction; 0 outside execution
  uint32_t instruction;  // of the instruction; the delegate's index for DelegateInit; 0 otherwise
  const char* name;      // method, operator ("aten::add.out") or backend id; "" for Move, JumpFalse, Free
};

struct EventHook {
  void (*on_event)(void* context, const Event& event) = nullptr;
  void* context = nullptr;

  void emit(const Event& event) const {
    if (on_event) on_event(context, event);
  }
};

}  // namespace armdeploy

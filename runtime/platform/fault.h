// SPDX-License-Identifier: Apache-2.0
// The end of firmware that faults: registers and status decoded to words, and a status that is not success.
#pragma once

namespace armdeploy {

// Exception entry of every fault and of every interrupt that nobody expects.
extern "C" void fault_entry();

}  // namespace armdeploy

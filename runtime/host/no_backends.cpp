// SPDX-License-Identifier: Apache-2.0
// The host has no NPU: a program with a delegate fails to load, naming its backend.
#include "runtime/core/backend.h"

namespace armdeploy {

const Backend kBackends[] = {{"", nullptr, nullptr}};  // C++ has no array without elements; it is not counted
const size_t kBackendCount = 0;

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// The delegates that this firmware has.
#include "runtime/core/backend.h"
#include "runtime/ethosu/delegate.h"

namespace armdeploy {

const Backend kBackends[] = {{"EthosUBackend", ethosu::init_delegate, ethosu::execute_delegate}};
const size_t kBackendCount = 1;

}  // namespace armdeploy

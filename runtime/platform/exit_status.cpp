// SPDX-License-Identifier: Apache-2.0
#include "runtime/platform/exit_status.h"

namespace armdeploy::exit_status {

uint32_t of(Error error) {
  switch (error) {
    case Error::Ok:
      return kOk;
    case Error::Internal:
    case Error::InvalidState:
      return kInternal;
    case Error::InvalidArgument:
    case Error::InvalidType:
    case Error::AccessFailed:
      return kUsage;
    default:
      return kDoesNotFit;
  }
}

}  // namespace armdeploy::exit_status

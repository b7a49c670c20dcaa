// SPDX-License-Identifier: Apache-2.0
// The generated FlatBuffers code of bundled programs; see schema.h.
#pragma once

#include "runtime/core/schema.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include "bundled_program_schema_generated.h"
#pragma GCC diagnostic pop

namespace armdeploy {

namespace fb_bundle = bundled_program_flatbuffer;

}  // namespace armdeploy

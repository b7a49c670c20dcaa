// SPDX-License-Identifier: Apache-2.0
// Command line of runner_host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace armdeploy::host {

constexpr size_t kMaxInputs = 64;
constexpr size_t kMaxDimensions = 16;

struct Input {
  const char* path = nullptr;
  int32_t shape[kMaxDimensions] = {};
  size_t rank = 0;
  bool shaped = false;  // false: the shape the tensor has
};

struct Options {
  const char* model = nullptr;
  Input inputs[kMaxInputs];
  size_t input_count = 0;
  const char* output = nullptr;
  const char* method = "forward";
  size_t inferences = 1;
  size_t method_pool = size_t{16} << 20;
  size_t temp_pool = size_t{4} << 20;
  size_t planned_pools[kMaxInputs] = {};
  size_t planned_count = 0;
  bool events = false;
};

extern const char kUsage[];

// False, after one line on stderr, when the arguments are not understood.
bool parse(int count, char** arguments, Options* out);

}  // namespace armdeploy::host

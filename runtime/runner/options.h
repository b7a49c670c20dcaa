// SPDX-License-Identifier: Apache-2.0
// The runner's command line: "executor_runner -m model.pte -i in0.bin -i in1.bin -o out".
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/error.h"

namespace armdeploy {

constexpr size_t kMaxInputs = 32;

struct Options {
  const char* model = nullptr;          // -m, --model: program or bundled program
  const char* inputs[kMaxInputs] = {};  // -i, --input: one file an input, in order
  size_t input_count = 0;
  const char* output = "out";    // -o, --output: output n goes to "<output>-n.bin"
  const char* method = nullptr;  // --method: default is the program's first
  const char* etdump = nullptr;  // --etdump: file for the profile
  const char* run_id = "none";   // --run-id: repeated in the last line of the log
  bool bundle = false;           // --bundle: inputs and expected outputs are in the model file
  uint32_t num_inferences = 1;   // --num-inferences
};

// Splits `line` in place (double quotes keep blanks) and keeps pointers into it. "--name=value" is accepted.
// Errors: InvalidArgument, after naming what is wrong.
Error parse_options(char* line, Options* out);

}  // namespace armdeploy

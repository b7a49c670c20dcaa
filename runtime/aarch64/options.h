// SPDX-License-Identifier: Apache-2.0
// The command line: "executor_runner -m model.pte -i in0.bin -i in1.bin -o out".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace armdeploy {

struct Options {
  std::string model;                // -m, --model
  std::vector<std::string> inputs;  // -i, --input: one file an input, in order, raw in the program's type
  std::string output = "out";       // -o, --output: output n goes to "<output>-n.bin"
  std::string method = "forward";   // --method
  std::string etdump;               // --etdump: file for the profile; empty: none is recorded
  std::string maps;                 // --maps: file for the memory map and the counter's address
  std::string run_id = "none";      // --run-id: repeated in the last line of the log
  std::string isa = "sme2";         // --isa: sme2, sme or neon; what is above it is hidden from the libraries
  std::string clock = "time";       // --clock: time, or calls: the clock tells how often it was asked
  uint32_t threads = 1;             // --threads
  uint32_t inferences = 1;          // --num-inferences: those that are reported
  uint32_t warmup = 0;              // --warmup: those before them
};

// Reads the command line; "--name=value" is accepted. False after naming on stderr what is wrong.
bool parse_options(int count, char** words, Options* out);

}  // namespace armdeploy

// SPDX-License-Identifier: Apache-2.0
// What the libraries are told of the CPU. They choose their kernels by the bits that `getauxval` gives them;
// the program exports that function and hides what is above `--isa` (sme2: nothing; sme: SME2; neon: SME and
// SME2), so one binary runs with SME2, with SME alone and without, and differs in nothing else.
#pragma once

namespace armdeploy {

// What this CPU itself has, whatever is hidden: "sme2", "sme" or "neon".
const char* best_isa();

}  // namespace armdeploy

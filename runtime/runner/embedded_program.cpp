// SPDX-License-Identifier: Apache-2.0
// The program inside the firmware (ET_PTE_FILE_PATH), in the linker script's section .model.
#ifdef ARMDEPLOY_PROGRAM
asm(".section .model, \"a\"\n"
    ".balign 64\n"
    ".incbin \"" ARMDEPLOY_PROGRAM
    "\"\n"
    ".text\n");
#endif

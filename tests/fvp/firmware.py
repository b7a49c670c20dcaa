# SPDX-License-Identifier: Apache-2.0
"""Whole firmware for tests: C built by arm-none-eabi-gcc for a board's memory map."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fvp.virtual.boards import BOARDS

LINKER = """
ENTRY(reset)
SECTIONS {{
  .vectors {vectors:#x} : {{ KEEP(*(.vectors)) }}
  .text {code:#x} : {{ *(.text*) *(.rodata*) }}
  .data {data:#x} : {{ *(.data*) *(.bss*) *(COMMON) }}
  stack = {stack:#x};
}}
"""

HEAD = """
#include <stdint.h>
extern char stack[];
int main(void);
static inline uint32_t semihosting(uint32_t operation, const void *block) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = block;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}
static void print(const char *text) { semihosting(4, text); }
static void print_word(uint32_t value) {
  char text[10];
  for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[value >> (28 - 4 * i) & 15];
  text[8] = ' '; text[9] = 0;
  print(text);
}
static void leave(uint32_t status) {
  uint32_t block[2] = {0x20026, status};
  semihosting(0x20, block);
}
#define WORD(address) (*(volatile uint32_t *)(address))
void reset(void) { leave(main()); }
void none(void);
#define WEAK(name) void name(void) __attribute__((weak));
WEAK(hard_fault) WEAK(bus_fault) WEAK(svcall) WEAK(systick)
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
  stack, reset, 0, hard_fault, 0, bus_fault, 0, 0, 0, 0, 0, svcall, 0, 0, 0, systick};
"""


def build(source: str, folder: Path, board: str = "corstone-320", name: str = "app.elf") -> Path:
    """An ELF of `source`, which defines ``main`` and may define handlers; HEAD comes first."""
    table = BOARDS[board]
    places = {memory.name: memory for memory in table.memories}
    script, text, elf = folder / "app.ld", folder / "app.c", folder / name
    code = table.vectors + 0x1000
    data = places["dtcm"]
    script.write_text(LINKER.format(vectors=table.vectors, code=code, data=data.base, stack=data.end))
    text.write_text(HEAD + source)
    flags = ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-O1", "-nostdlib", "-ffreestanding"]
    command = ["arm-none-eabi-gcc", *flags, "-T", script, text, "-o", elf, "-lgcc"]
    subprocess.run(command, check=True, capture_output=True)
    return elf


def build_with_newlib(source: str, folder: Path) -> Path:
    """An ELF of a hosted program with newlib's semihosting library and no vector table, for Corstone-320."""
    text, elf = folder / "hosted.c", folder / "hosted.elf"
    text.write_text(source)
    flags = ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-O1", "--specs=rdimon.specs"]
    command = ["arm-none-eabi-gcc", *flags, "-Wl,-Ttext-segment=0x12000000", text, "-o", elf]
    subprocess.run(command, check=True, capture_output=True)
    return elf

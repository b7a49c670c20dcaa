# SPDX-License-Identifier: Apache-2.0
"""The virtual Corstone: firmware for real boards on a stock qemu-arm, the board around the CPU modelled here.

QEMU's user mode executes Cortex-M code; an access to an address without memory stops the guest before it
happens, and is served from a device model.

boards      memory maps and devices as data          machine     a board's devices, the serving loop
run         the platform: one job to its outcome     cpu         loads, stores, exceptions of the stopped CPU
mlek        what is special to Arm's firmware        decode      the load or store at the program counter
elf         firmware and board as one ELF, cached    gdb         client of QEMU's debugger port
relocate    addresses QEMU cannot map                process     the QEMU process and its memory
tools       where QEMU, firmware and cache are       devices/    UART, timers, interrupts, NPU
"""

# SPDX-License-Identifier: Apache-2.0
"""The boards as data: memories, constant pages, devices and interrupt numbers, one table with many readers.

Sources: the memory maps in Arm's Corstone SSE-300 (AN547) and SSE-320 FVP documentation. QEMU's user mode can
map
guest addresses below 2 GiB only, so a memory that lies above has two addresses: `hardware`, where firmware
for the real board expects it, and `base`, where it is mapped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

KIB, MIB = 1 << 10, 1 << 20
PAGE = 4 * KIB


@dataclass(frozen=True)
class Memory:
    """Plain RAM of `size` bytes, mapped at `base`; `hardware` is its address on the real board if another."""

    name: str
    base: int
    size: int
    hardware: int | None = None

    @property
    def end(self) -> int:
        """First address behind the memory."""
        return self.base + self.size


@dataclass(frozen=True)
class ConstantPage:
    """A device of which only constants are ever read: mapped as RAM, so that touching it costs nothing.

    Attributes:
        bases: addresses of the page (non-secure and secure alias).
        words: byte offset to 32-bit value; everything else reads 0.
    """

    name: str
    bases: tuple[int, ...]
    words: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceSlot:
    """A device whose every access is modelled.

    Attributes:
        model: which device model: "scs", "ignore", "fpgaio", "cmsdk-uart", "ethos-u".
        bases: addresses of its first register (non-secure and secure alias).
        size: bytes of its register block, a multiple of 4 KiB.
        irq: number of its external interrupt, None without one.
    """

    name: str
    model: str
    bases: tuple[int, ...]
    size: int = PAGE
    irq: int | None = None


@dataclass(frozen=True)
class Board:
    """One subsystem with its NPU.

    Attributes:
        cpu: the core, in Arm's spelling.
        qemu_cpu: QEMU's CPU model that executes its instructions.
        cpuid: value of the CPUID register at 0xE000ED00.
        staging: unused page-aligned address where accesses that must be executed in place are redirected.
    """

    name: str
    cpu: str
    qemu_cpu: str
    cpuid: int
    memories: tuple[Memory, ...]
    pages: tuple[ConstantPage, ...]
    devices: tuple[DeviceSlot, ...]
    staging: int = 0x5FFF_F000

    def guest_address(self, hardware: int) -> int:
        """Where the memory at a real board's address is mapped here.

        Raises:
            LookupError: no memory is there.
        """
        for memory in self.memories:
            start = memory.base if memory.hardware is None else memory.hardware
            if start <= hardware < start + memory.size:
                return hardware - start + memory.base
        raise LookupError(f"{self.name} has no memory at {hardware:#010x}")

    def has_memory(self, address: int) -> bool:
        """Whether an address of the guest is in one of the memories."""
        return any(memory.base <= address < memory.end for memory in self.memories)

    def moved(self) -> Iterator[Memory]:
        """Memories whose address here is not the real board's."""
        return (memory for memory in self.memories if memory.hardware not in (None, memory.base))


_PRIVATE_PERIPHERAL_BUS = (
    DeviceSlot("system control space", "scs", (0xE000_E000, 0xE002_E000)),
    DeviceSlot("instrumentation", "ignore", (0xE000_0000,), size=0xE000),
    DeviceSlot("implementation control", "ignore", (0xE001_E000,)),
)

_HDLCD_ID = 0x1CDC_0000

CORSTONE_320 = Board(
    name="corstone-320",
    cpu="Cortex-M85",
    qemu_cpu="cortex-m55",
    cpuid=0x411F_D230,
    memories=(
        Memory("itcm", 0x1000_0000, 32 * KIB),
        Memory("boot", 0x1100_0000, 128 * KIB),
        Memory("bram", 0x1200_0000, 2 * MIB),
        Memory("dtcm", 0x3000_0000, 32 * KIB),
        Memory("sram", 0x3100_0000, 4 * MIB),
        Memory("ddr-2", 0x6000_0000, 256 * MIB, hardware=0x9000_0000),
        Memory("ddr-1", 0x7000_0000, 128 * MIB),
    ),
    pages=(
        ConstantPage("scc", (0x4820_0000, 0x5820_0000)),
        ConstantPage("hdlcd", (0x4031_0000, 0x5031_0000), {0: _HDLCD_ID}),
    ),
    devices=(
        *_PRIVATE_PERIPHERAL_BUS,
        DeviceSlot("fpgaio", "fpgaio", (0x4820_2000, 0x5820_2000)),
        DeviceSlot("uart0", "cmsdk-uart", (0x4820_3000, 0x5820_3000)),
        DeviceSlot("npu", "ethos-u", (0x4000_4000, 0x5000_4000), size=8 * KIB, irq=16),
    ),
)

CORSTONE_300 = Board(
    name="corstone-300",
    cpu="Cortex-M55",
    qemu_cpu="cortex-m55",
    cpuid=0x410F_D221,
    memories=(
        Memory("itcm", 0x0000_0000, 512 * KIB),
        Memory("bram", 0x1100_0000, 2 * MIB),
        Memory("dtcm", 0x2000_0000, 512 * KIB),
        Memory("sram", 0x3100_0000, 2 * MIB),
        Memory("ddr-2", 0x6000_0000, 256 * MIB, hardware=0x9000_0000),
        Memory("ddr-1", 0x7000_0000, 128 * MIB),
    ),
    pages=(
        ConstantPage("scc", (0x4930_0000, 0x5930_0000)),
        ConstantPage("lcd", (0x4930_A000, 0x5930_A000)),
    ),
    devices=(
        *_PRIVATE_PERIPHERAL_BUS,
        DeviceSlot("fpgaio", "fpgaio", (0x4930_2000, 0x5930_2000)),
        DeviceSlot("uart0", "cmsdk-uart", (0x4930_3000, 0x5930_3000)),
        DeviceSlot("npu", "ethos-u", (0x4810_2000, 0x5810_2000), irq=56),
    ),
)

BOARDS: Mapping[str, Board] = MappingProxyType({board.name: board for board in (CORSTONE_320, CORSTONE_300)})

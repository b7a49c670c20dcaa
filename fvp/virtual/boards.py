# SPDX-License-Identifier: Apache-2.0
"""The boards as data: memories, constant pages, devices, interrupt numbers; one file each in `cmake/boards`.

The same files give the firmware build its linker script and addresses. Sources: the memory maps in Arm's
Corstone SSE-300 (AN547), SSE-310 and SSE-320 FVP documentation and in the board files of Arm's ML evaluation
kit. QEMU's user mode can map guest addresses below 2 GiB only, so a memory that lies above has two addresses:
`hardware`, where firmware for the real board expects it, and `base`, where it is mapped here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
PAGE = 4 * KIB

_FILES = Path(__file__).resolve().parents[2] / "cmake" / "boards"


@dataclass(frozen=True)
class Memory:
    """Plain RAM of `size` bytes, mapped at `base`; `hardware` is its address on the real board if another.

    `npu` tells whether the NPU's bus masters reach it.
    """

    name: str
    base: int
    size: int
    hardware: int | None = None
    npu: bool = True

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
        model: which device model: "scs", "ignore", "trace", "fpgaio", "cmsdk-uart", "timing-adapter" or
            "ethos-u".
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
        npus: NPUs it exists with ("ethos-u55" …), the usual one first.
        clock_hz: rate of the CPU clock.
        vectors: where the vector table is after reset.
        staging: unused page-aligned address where accesses that must be executed in place are redirected.
    """

    name: str
    cpu: str
    qemu_cpu: str
    cpuid: int
    memories: tuple[Memory, ...]
    pages: tuple[ConstantPage, ...]
    devices: tuple[DeviceSlot, ...]
    npus: tuple[str, ...] = ()
    clock_hz: int = 32_000_000
    vectors: int = 0
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

    def has_memory(self, address: int, size: int = 1) -> bool:
        """Whether `size` bytes at an address of the guest are in one of the memories."""
        return any(memory.base <= address and address + size <= memory.end for memory in self.memories)

    def moved(self) -> Iterator[Memory]:
        """Memories whose address here is not the real board's."""
        return (memory for memory in self.memories if memory.hardware not in (None, memory.base))


_PRIVATE_PERIPHERAL_BUS = (
    DeviceSlot("system control space", "scs", (0xE000_E000, 0xE002_E000)),
    DeviceSlot("instrumentation", "ignore", (0xE000_0000,)),
    DeviceSlot("watchpoint and trace", "trace", (0xE000_1000,)),
    DeviceSlot("breakpoint and performance units", "ignore", (0xE000_2000,), size=0xC000),
    DeviceSlot("implementation control", "ignore", (0xE001_E000,)),
)
"""What every Armv8-M core has at the same place."""


def load(path: Path) -> Board:
    """The board described by a file of `cmake/boards`."""
    data = json.loads(path.read_text())
    cpu, devices = data["cpu"], data["devices"]
    memories = tuple(_memory(item) for item in data["memories"])
    places = {memory.name: memory.base for memory in memories}
    return Board(
        name=data["name"],
        cpu=cpu["name"],
        qemu_cpu=cpu["qemu"],
        cpuid=_number(cpu["cpuid"]),
        memories=memories,
        pages=tuple(_page(item) for item in devices if item["model"] == "constant"),
        devices=(*_PRIVATE_PERIPHERAL_BUS, *(_slot(item) for item in devices if item["model"] != "constant")),
        npus=tuple(data["npus"]),
        clock_hz=cpu["clock_hz"],
        vectors=places[data["placement"]["vectors"]],
    )


def _memory(item: Mapping[str, Any]) -> Memory:
    hardware = _number(item["base"])
    moved = "virtual_base" in item
    base = _number(item["virtual_base"]) if moved else hardware
    return Memory(item["name"], base, _number(item["size"]), hardware if moved else None, item["npu"])


def _page(item: Mapping[str, Any]) -> ConstantPage:
    words = {_number(offset): _number(value) for offset, value in item.get("words", {}).items()}
    return ConstantPage(item["name"], _bases(item), words)


def _slot(item: Mapping[str, Any]) -> DeviceSlot:
    size = _number(item.get("size", hex(PAGE)))
    return DeviceSlot(item["name"], item["model"], _bases(item), size, item.get("irq"))


def _bases(item: Mapping[str, Any]) -> tuple[int, int]:
    return _number(item["nonsecure"]), _number(item["secure"])


def _number(text: str) -> int:
    return int(text, 0)


CORSTONE_300, CORSTONE_310, CORSTONE_320 = (load(_FILES / f"corstone-{n}.json") for n in (300, 310, 320))

BOARDS: Mapping[str, Board] = MappingProxyType(
    {board.name: board for board in (CORSTONE_320, CORSTONE_310, CORSTONE_300)}
)

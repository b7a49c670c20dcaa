# SPDX-License-Identifier: Apache-2.0
"""Checks of a firmware ELF against its board, and its footprint; the last step of every build of the runner.

Needs pyelftools. Exit codes: 0 ok, 3 not readable, 4 the image cannot run on the board, 6 over a limit.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import footprint
from board import Board, BoardError, Memory, read_board

HEAP_SYMBOLS = frozenset(
    {
        "malloc",
        "_malloc_r",
        "calloc",
        "realloc",
        "free",
        "_sbrk",
        "_sbrk_r",
        "_Znwj",
        "_Znaj",
        "_ZdlPv",
        "__cxa_throw",
    }
)
"""Symbols that are there only when something allocates from a heap or throws."""

_SHF_WRITE, _SHF_ALLOC = 1, 2


@dataclass(frozen=True)
class Section:
    """An allocated section: where it runs, where it is loaded, whether the ELF holds its bytes."""

    name: str
    address: int
    load: int
    size: int
    writable: bool
    stored: bool


@dataclass(frozen=True)
class Firmware:
    """What the checks read of an ELF."""

    sections: tuple[Section, ...]
    symbols: dict[str, int]
    vectors: bytes
    entry: int

    def section(self, name: str) -> Section | None:
        """The allocated section called `name`."""
        return next((section for section in self.sections if section.name == name), None)

    @property
    def stack(self) -> int:
        """Bytes of stack."""
        return self.symbols["__stack_top"] - self.symbols["__stack_limit"]

    @property
    def read_only(self) -> int:
        """Bytes of code, constants and initial values, without an embedded program."""
        return sum(s.size for s in self.sections if s.stored and s.name != ".model")

    @property
    def ram(self) -> int:
        """Bytes of data, zero-initialised data and stack, without pools."""
        return sum(s.size for s in self.sections if s.writable and s.name != ".model") + self.stack


def read_firmware(path: Path) -> Firmware:
    """Read an ELF.

    Raises:
        OSError: it cannot be read.
        ELFError: it is no ELF.
        KeyError: it was not linked with the runner's linker script.
    """
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        symbols = {symbol.name: symbol["st_value"] for symbol in table.iter_symbols() if symbol.name}
        vectors = elf.get_section_by_name(".vectors")
        if missing := {"__stack_top", "__stack_limit"} - symbols.keys():
            raise KeyError(f"no symbol {', '.join(sorted(missing))}")
        return Firmware(
            tuple(_sections(elf)), symbols, vectors.data() if vectors else b"", elf.header["e_entry"]
        )


def _sections(elf: Any) -> Iterator[Section]:
    segments = [segment for segment in elf.iter_segments("PT_LOAD") if segment["p_memsz"]]
    for section in elf.iter_sections():
        flags, address, size = section["sh_flags"], section["sh_addr"], section["sh_size"]
        if not flags & _SHF_ALLOC or not size:
            continue
        shift = next(
            (
                s["p_paddr"] - s["p_vaddr"]
                for s in segments
                if s["p_vaddr"] <= address < s["p_vaddr"] + s["p_memsz"]
            ),
            0,
        )
        stored = section["sh_type"] != "SHT_NOBITS"
        yield Section(section.name, address, address + shift, size, bool(flags & _SHF_WRITE), stored)


def _memory_of(board: Board, address: int, size: int) -> Memory | None:
    return next((m for m in board.memories if m.base <= address and address + size <= m.base + m.size), None)


def check_places(firmware: Firmware, board: Board) -> Iterator[str]:
    """Sections that are not in one memory of the board, run and load address."""
    for section in firmware.sections:
        for address in {section.address, section.load if section.stored else section.address}:
            if _memory_of(board, address, section.size) is None:
                where = f"{section.size} bytes at {address:#010x}"
                yield f"{section.name}: {where} are in no memory of {board.name}"


def check_vectors(firmware: Firmware, board: Board) -> Iterator[str]:
    """Vector table: its place and alignment, initial stack pointer and reset handler."""
    section = firmware.section(".vectors")
    if section is None or len(firmware.vectors) < 8:
        yield "there is no vector table (.vectors)"
        return
    start = board.memory("vectors").base
    if section.address != start:
        yield f"the vector table is at {section.address:#010x}, the CPU starts at {start:#010x}"
    alignment = max(128, 1 << (section.size - 1).bit_length())
    if section.address % alignment:
        yield f"the vector table of {section.size} bytes is not at a multiple of {alignment}"
    stack, reset = struct.unpack_from("<2I", firmware.vectors)
    if stack % 8 or _memory_of(board, stack - 8, 8) is None:
        yield f"the initial stack pointer {stack:#010x} is not an aligned end of a memory"
    if not reset & 1 or reset != firmware.entry | 1:
        yield f"the reset vector {reset:#010x} is not the entry point {firmware.entry:#010x} in Thumb state"


def check_stack(firmware: Firmware) -> Iterator[str]:
    """The stack must not overlap data."""
    limit, end = firmware.symbols["__stack_limit"], firmware.symbols.get("__bss_end", 0)
    if limit % 8:
        yield f"the stack limit {limit:#010x} is not at a multiple of 8"
    if end > limit:
        yield f"data ends at {end:#010x}, behind the stack limit {limit:#010x}"


def check_heap(firmware: Firmware, allowed: Sequence[str]) -> Iterator[str]:
    """No heap, no exceptions."""
    for name in sorted(HEAP_SYMBOLS & firmware.symbols.keys() - set(allowed)):
        yield f"{name} is linked in: something uses a heap or exceptions"


def check_alignment(firmware: Firmware) -> Iterator[str]:
    """What the NPU reads in place must be at multiples of 16."""
    for name in (
        "__model_start",
        "__pool_file_start",
        "__pool_method_start",
        "__pool_temp_start",
        "__pool_fast_start",
    ):
        if firmware.symbols.get(name, 0) % 16:
            yield f"{name} {firmware.symbols[name]:#010x} is not at a multiple of 16"


def check_limits(firmware: Firmware, code_limit: int | None, ram_limit: int | None) -> Iterator[str]:
    """Budgets, where given."""
    amounts = (
        ("code and constants", firmware.read_only, code_limit),
        ("RAM", firmware.ram, ram_limit),
    )
    for name, used, limit in amounts:
        if limit is not None and used > limit:
            yield f"{name}: {used} bytes, {used - limit} over the limit of {limit}"


def summary(firmware: Firmware, board: Board) -> Iterator[str]:
    """Lines: use of every memory, then the two totals."""
    used = dict.fromkeys((memory.name for memory in board.memories), 0)
    for section in firmware.sections:
        for address in {section.address, section.load if section.stored else section.address}:
            memory = _memory_of(board, address, section.size)
            if memory:
                used[memory.name] += section.size
    used[board.placement["stack"]] += firmware.stack
    for pool in ("file", "method", "temp", "fast"):
        start, size = firmware.symbols[f"__pool_{pool}_start"], firmware.symbols[f"__pool_{pool}_size"]
        memory = _memory_of(board, start, size)
        if memory:
            used[memory.name] += size
    for memory in board.memories:
        if used[memory.name]:
            yield f"{memory.name:<12}{used[memory.name]:>10} of {memory.size} bytes"
    yield f"code and constants (without a program): {firmware.read_only} bytes"
    yield f"RAM (data and stack, without pools): {firmware.ram} bytes"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("elf", type=Path)
    parser.add_argument("--board", type=Path, required=True, help="board file (JSON)")
    parser.add_argument("--map", type=Path, help="GNU ld map file, for the table by component")
    parser.add_argument("--limit-code", type=int, metavar="BYTES")
    parser.add_argument("--limit-ram", type=int, metavar="BYTES")
    parser.add_argument("--allow", action="append", default=[], metavar="SYMBOL", help="expected heap symbol")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    from elftools.common.exceptions import ELFError

    options: Any = _options(arguments)
    try:
        board, firmware = read_board(options.board), read_firmware(options.elf)
    except (OSError, KeyError, AttributeError, ELFError, BoardError) as error:
        print(f"elf_check.py: {options.elf}: not a firmware of this build: {error}", file=sys.stderr)
        return 3
    if options.map:
        print("\n".join(footprint.render(footprint.by_component(options.map.read_text().splitlines()))))
    print("\n".join(summary(firmware, board)))
    wrong = [
        *check_places(firmware, board),
        *check_vectors(firmware, board),
        *check_stack(firmware),
        *check_heap(firmware, options.allow),
        *check_alignment(firmware),
    ]
    over = list(check_limits(firmware, options.limit_code, options.limit_ram))
    for line in wrong + over:
        print(f"elf_check.py: {options.elf.name}: {line}", file=sys.stderr)
    return 4 if wrong else 6 if over else 0


if __name__ == "__main__":
    sys.exit(main())

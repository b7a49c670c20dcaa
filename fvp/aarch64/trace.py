# SPDX-License-Identifier: Apache-2.0
"""What an emulated run executed: QEMU's log of translation blocks, cut at the calls of the runner's clock.

``qemu-aarch64 -d in_asm,exec,nochain`` prints every block's instructions when it translates it and a line
each time it executes it. The runner's clock counts its calls, so ETDump's time stamps are numbers of calls
and the blocks between two calls belong to what was timed there. A block that is left early by an exception
counts whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fvp.aarch64.instructions import CLASSES, class_of
from report.errors import RunFailed

QEMU_OPTIONS = ("-d", "in_asm,exec,nochain")

_COUNTER = "counter "


@dataclass(frozen=True)
class Block:
    """A translation block: where it starts, and how many instructions of each of `CLASSES` it has."""

    address: int
    classes: tuple[int, ...]

    @property
    def instructions(self) -> int:
        return sum(self.classes)


@dataclass(frozen=True)
class Trace:
    """Executions by block (index into `blocks`) in each window; window n follows call n of the clock."""

    blocks: tuple[Block, ...]
    windows: tuple[Mapping[int, int], ...]

    def tally(self, first: int, last: int) -> Counter[int]:
        """Executions by block in the windows `first` up to, not including, `last`."""
        total: Counter[int] = Counter()
        for window in self.windows[first:last]:
            total.update(window)
        return total

    def classes(self, tally: Mapping[int, int]) -> tuple[int, ...]:
        """Instructions by class of a tally."""
        rows = [[count * number for number in self.blocks[index].classes] for index, count in tally.items()]
        return tuple(map(sum, zip(*rows, strict=True))) if rows else (0,) * len(CLASSES)


class TraceReader:
    """Reads QEMU's log piece by piece, as it is written.

    Args:
        maps: the file that the runner writes before its clock counts; its last line tells the counter's
            address.

    Raises:
        RunFailed: by `feed`, when the log executes a block that it has not shown.
    """

    def __init__(self, maps: Path) -> None:
        self._maps = maps
        self._rest = b""
        self._indices: dict[bytes, int] = {}
        self._blocks: list[Block] = []
        self._shown: dict[int, Counter[int]] = {}
        self._current: Counter[int] = Counter()
        self._counter_address: int | None = None
        self._marker = -1
        self._windows: list[dict[int, int]] = []
        self._window: dict[int, int] = {}

    def feed(self, data: bytes) -> None:
        """Take the next piece of the log."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            index = self._indices.get(line)
            if index is None:
                index = self._new_line(line)
                if index is None:
                    continue
            if index == self._marker:
                self._windows.append(self._window)
                self._window = {}
            self._window[index] = self._window.get(index, 0) + 1

    def finish(self) -> Trace:
        """The whole trace.

        Raises:
            RunFailed: the clock was never asked.
        """
        if not self._windows:
            raise RunFailed("the emulator's log shows no call of the runner's clock", where="trace")
        return Trace(tuple(self._blocks), (*self._windows, self._window))

    def _new_line(self, line: bytes) -> int | None:
        """Index of the block that a line executes for the first time; None for lines of other kinds."""
        if line.startswith(b"0x"):
            address, word = line.split(None, 2)[:2]
            if not self._current:
                self._shown[int(address[:-1], 16)] = self._current
            self._current[class_of(int(word, 16))] += 1
        elif line.startswith(b"IN:"):
            self._current = Counter()
        elif line.startswith(b"Trace"):
            return self._new_block(line)
        return None

    def _new_block(self, line: bytes) -> int:
        address = int(line.split(b"/")[1], 16)
        if address not in self._shown:
            raise RunFailed(f"the log executes a block at {address:#x} that it has not shown", where="trace")
        index = self._indices[line] = len(self._blocks)
        counts = self._shown[address]
        self._blocks.append(Block(address, tuple(counts[number] for number in range(len(CLASSES)))))
        if self._counter_address is None:
            self._counter_address = counter_address(self._maps)
        if address == self._counter_address:
            self._marker = index
        return index


def counter_address(maps: Path) -> int | None:
    """Address of the runner's counter, None while the file is not there or not complete."""
    try:
        last = maps.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
    except OSError:
        return None
    return int(last.removeprefix(_COUNTER), 16) if last.startswith(_COUNTER) else None


def by_symbol(blocks: Sequence[Block], tally: Mapping[int, int], names: Mapping[int, str]) -> Counter[str]:
    """Instructions by function.

    Args:
        names: function by block index.
    """
    total: Counter[str] = Counter()
    for index, count in tally.items():
        total[names[index]] += count * blocks[index].instructions
    return total


def add(tallies: Iterable[Mapping[int, int]]) -> Counter[int]:
    """The sum of tallies."""
    total: Counter[int] = Counter()
    for tally in tallies:
        total.update(tally)
    return total

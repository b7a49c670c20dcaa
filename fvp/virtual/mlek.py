# SPDX-License-Identifier: Apache-2.0
"""What is known of Arm's prebuilt inference runner (ML evaluation kit, ExecuTorch build) alone.

The firmware finds model and inputs at fixed addresses (the FVP fills them with ``--data FILE@ADDRESS``),
copies the outputs to another, and reports over its console.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fvp.platform import Check, printed
from fvp.virtual import tools
from fvp.virtual.boards import MIB, Board
from fvp.virtual.cpu import Registers
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.elf import Image, prepare
from fvp.virtual.firmware import Firmware, Workload, no_errors, npu_used
from fvp.virtual.gdb import LR, PC
from fvp.virtual.machine import Ending, Hook, Served
from fvp.virtual.process import GuestMemory
from fvp.virtual.shortcuts import LinearSearch, calls
from npu.config import Family
from report.errors import CompileError, EnvironmentError_


@dataclass(frozen=True)
class Window:
    """A range of the real board's addresses that the firmware reads or writes."""

    name: str
    address: int
    size: int


MODEL = Window("model", 0x9000_0000, 32 * MIB)
INPUTS = Window("inputs", 0x9200_0000, 16 * MIB)
OUTPUTS = Window("outputs", 0x9300_0000, 16 * MIB)

_WRITE = "_write"
"""newlib's low-level output: (file, buffer, length), the firmware's path for all text."""

_LOG_OPERATORS = "_ZN3arm3app3fwk2et7EtModel15LogOperatorInfoEv"
_COMPARE = "memcmp"

_BANNER, _LOADED, _FINISHED = "Ethos-U Evaluation Kit", "Model initialisation complete", "program terminating"
_NAMING = (_BANNER, "Version ", "Compiler:", "CPU:", "Target system design:", "MACs/cc:")
_READ = re.compile(r"(\d+) input tensor/s populated with (\d+) bytes")
_WRITTEN = re.compile(r"(\d+) output tensor/s worth (\d+) bytes copied")
_COUNTER = re.compile(r"^INFO - (NPU .+): (\d+) (?:cycles|beats)$", re.MULTILINE)
_METRICS = re.compile(r"<metrics>([A-Za-z0-9+/=]*)</metrics>")

_POISON_GUARD = 64
"""Poisoned bytes behind the outputs, which the firmware must leave alone."""

_POISON_PROOF = 4
"""Output bytes from which untouched poison cannot be an output by chance."""


class MlekFirmware(Firmware):
    """The firmware on one board.

    Args:
        board: the board it was built for.
        image: the prepared image.
        workload: what it runs.

    Raises:
        EnvironmentError_: the image lacks a symbol that is needed.
    """

    name = "mlek"
    boards: ClassVar[Mapping[Family, str]] = {Family.U55: "corstone-300", Family.U85: "corstone-320"}

    def __init__(self, board: Board, image: Image, workload: Workload) -> None:
        if _WRITE not in image.symbols:
            raise EnvironmentError_(f"{image.source} has no symbol {_WRITE}", where="virtual")
        self._board, self.image, self._workload = board, image, workload

    @classmethod
    def missing(cls, family: Family) -> str | None:
        """None when Arm's image for the family's board is installed."""
        board = cls.boards.get(family)
        if board is None:
            return f"Arm ships no prebuilt ExecuTorch firmware for Ethos-{family.name}"
        if tools.find_image(board) is None:
            return f"Arm's firmware for {board} is not installed; run ./setup.sh"
        return None

    @classmethod
    def create(cls, board: Board, workload: Workload) -> MlekFirmware:
        """Arm's image for the board.

        Raises:
            EnvironmentError_: it is not installed.
        """
        return cls(board, prepare(tools.require_image(board.name), board), workload)

    def hooks(self, console: Console, memory: GuestMemory) -> Mapping[int, Hook]:
        """See `shortcuts`."""
        return shortcuts(self._board, self.image, console, memory)

    def load(self, memory: GuestMemory) -> None:
        """Put program and inputs in place and poison where the outputs will be.

        Raises:
            CompileError: one of them does not fit.
        """
        program, joined = self._workload.program, b"".join(self._workload.inputs)
        poisoned = sum(self._workload.output_sizes) + _POISON_GUARD
        for window, needed in ((MODEL, len(program)), (INPUTS, len(joined)), (OUTPUTS, poisoned)):
            require_fit(window, needed)
        memory.write(self._board.guest_address(MODEL.address), program)
        memory.write(self._board.guest_address(INPUTS.address), joined)
        memory.write(self._board.guest_address(OUTPUTS.address), _poison(poisoned))

    def outputs(self, memory: GuestMemory) -> tuple[list[bytes], Check]:
        """The bytes of every output, and whether all of them, and nothing behind, were written."""
        sizes = self._workload.output_sizes
        found = memory.read(self._board.guest_address(OUTPUTS.address), sum(sizes) + _POISON_GUARD)
        ends = list(itertools.accumulate(sizes, initial=0))
        parts = [found[start:end] for start, end in itertools.pairwise(ends)]
        return parts, _written(found, sizes)

    def evidence(self, log: str, jobs: Sequence[NpuJob], ending: Ending) -> list[Check]:
        """See `Firmware.evidence`."""
        inputs, outputs = self._workload.inputs, self._workload.output_sizes
        return [
            *no_errors(log, jobs),
            printed(log, "firmware banner", _BANNER),
            printed(log, "model loaded", _LOADED),
            _transfer("inputs read", _READ, log, len(inputs), sum(map(len, inputs))),
            npu_used(jobs, self._workload.delegate_calls),
            _transfer("outputs written", _WRITTEN, log, len(outputs), sum(outputs)),
            printed(log, "end marker", _FINISHED),
        ]

    def banner(self, log: str) -> tuple[str, ...]:
        """The lines in which the firmware names itself and what it runs on."""
        lines = (line.removeprefix("INFO - ").strip() for line in log.splitlines())
        return tuple(line for line in lines if any(mark in line for mark in _NAMING))

    def counters(self, log: str) -> dict[str, int]:
        """The NPU counters of log lines and metrics block, by lower-case name."""
        found = {counter_name(name): int(value) for name, value in _COUNTER.findall(log)}
        for block in _METRICS.findall(log):
            found |= {counter_name(name): value for name, value in _metrics(block)}
        return found


def shortcuts(board: Board, image: Image, console: Console, memory: GuestMemory) -> dict[int, Hook]:
    """What is done in place of the firmware's code, for speed.

    Console text is taken in whole pieces at `_write`; through the UART every byte costs two stops. The end of
    the search for the memory mode, which passes over the whole program (90 ns a byte) to log it, is computed.
    """

    def write(registers: Registers, memory: GuestMemory) -> Served:
        console.put(memory.read(registers[1], registers[2]))
        registers[0] = registers[2]
        registers[PC] = registers[LR] & ~1
        return Served.REPLACED

    return {image.symbols[_WRITE]: write} | searches(board, image, memory)


def searches(board: Board, image: Image, memory: GuestMemory) -> dict[int, Hook]:
    """A `LinearSearch` for each call of the search's comparison."""
    function, compare = (image.symbols.get(name) for name in (_LOG_OPERATORS, _COMPARE))
    if function is None or compare is None:
        return {}
    code = memory.read(function, image.extent(function))
    end = board.guest_address(MODEL.address) + MODEL.size
    return {site: LinearSearch(end) for site in calls(code, function, compare)}


def require_fit(window: Window, needed: int) -> None:
    """Raise CompileError when `needed` bytes do not fit the window."""
    if needed > window.size:
        missing = needed - window.size
        raise CompileError(
            f"{window.name}: requested {needed} bytes, available {window.size}, missing {missing}",
            where="virtual",
            why=f"Arm's firmware has {window.size // MIB} MiB for its {window.name}",
        )


def counter_name(printed: str) -> str:
    """``npu_active`` and ``sram_rd_data_beat_received`` from the firmware's ``NPU …`` spellings."""
    name = printed.lower().replace(" ", "_")
    return name.removeprefix("npu_").removeprefix("ethosu_pmu_") if "beat" in name else name


def _metrics(block: str) -> Iterable[tuple[str, int]]:
    """Name and last value of every sample of a base64 metrics block; nothing of a damaged one."""
    try:
        groups = json.loads(base64.b64decode(block, validate=True))
        return [(sample["name"], int(sample["value"][-1])) for group in groups for sample in group["samples"]]
    except (ValueError, KeyError, TypeError, IndexError):
        return []


def _transfer(name: str, line: re.Pattern[str], log: str, tensors: int, size: int) -> Check:
    """The firmware's own account of a copy must be what was meant."""
    expected = f"{tensors} tensor(s), {size} bytes"
    match = line.search(log)
    if match is None:
        return Check(name, False, f"{expected} expected, none reported")
    actual = f"{match[1]} tensor(s), {match[2]} bytes"
    return Check(
        name, actual == expected, expected if actual == expected else f"{actual} in place of {expected}"
    )


def _poison(size: int) -> bytes:
    """Bytes that no plausible output equals: a full-period sequence without runs."""
    return ((np.arange(size, dtype=np.uint32) * 167 + 0xA5) & 0xFF).astype(np.uint8).tobytes()


def _written(found: bytes, sizes: Sequence[int]) -> Check:
    total = sum(sizes)
    poison = _poison(len(found))
    name = "outputs changed"
    if found[total:] != poison[total:]:
        return Check(name, False, f"memory behind the {total} output bytes was written too")
    start = 0
    for number, size in enumerate(sizes):
        if size >= _POISON_PROOF and found[start : start + size] == poison[start : start + size]:
            return Check(name, False, f"output {number}: none of its {size} bytes was written")
        start += size
    return Check(name, True, f"{total} bytes")

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

import numpy as np

from fvp.platform import Check, OutputSpec, nbytes
from fvp.virtual.boards import MIB, Board
from fvp.virtual.cpu import Registers
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.elf import Image
from fvp.virtual.gdb import LR, PC
from fvp.virtual.machine import Hook, Served
from fvp.virtual.process import GuestMemory
from fvp.virtual.shortcuts import LinearSearch, calls
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
_ERROR_LINE = re.compile(r"^(?:E:|E \[|F \[|ERROR\b|F:).*", re.MULTILINE)
_READ = re.compile(r"(\d+) input tensor/s populated with (\d+) bytes")
_WRITTEN = re.compile(r"(\d+) output tensor/s worth (\d+) bytes copied")
_COUNTER = re.compile(r"^INFO - (NPU .+): (\d+) (?:cycles|beats)$", re.MULTILINE)
_METRICS = re.compile(r"<metrics>([A-Za-z0-9+/=]*)</metrics>")

_POISON_GUARD = 64
"""Poisoned bytes behind the outputs, which the firmware must leave alone."""

_POISON_PROOF = 4
"""Output bytes from which untouched poison cannot be an output by chance."""


class MlekFirmware:
    """The firmware on one board.

    Args:
        board: the board it was built for.
        image: the prepared image.

    Raises:
        EnvironmentError_: the image lacks a symbol that is needed.
    """

    def __init__(self, board: Board, image: Image) -> None:
        if _WRITE not in image.symbols:
            raise EnvironmentError_(f"{image.source} has no symbol {_WRITE}", where="virtual")
        self._board, self._image = board, image

    def hooks(self, console: Console, memory: GuestMemory) -> Mapping[int, Hook]:
        """What is done in place of the firmware's code, or to help it.

        Console text is taken in whole pieces at `_write`; through the UART every byte costs two stops.
        """

        def write(registers: Registers, memory: GuestMemory) -> Served:
            console.put(memory.read(registers[1], registers[2]))
            registers[0] = registers[2]
            registers[PC] = registers[LR] & ~1
            return Served.REPLACED

        return {self._image.symbols[_WRITE]: write} | self._searches(memory)

    def _searches(self, memory: GuestMemory) -> dict[int, Hook]:
        """The search for the memory mode, which passes over the whole program (90 ns a byte) to log it."""
        function, compare = (self._image.symbols.get(name) for name in (_LOG_OPERATORS, _COMPARE))
        if function is None or compare is None:
            return {}
        code = memory.read(function, self._image.extent(function))
        end = self._board.guest_address(MODEL.address) + MODEL.size
        return {site: LinearSearch(end) for site in calls(code, function, compare)}

    def load(
        self, memory: GuestMemory, program: bytes, inputs: Sequence[bytes], specs: Sequence[OutputSpec]
    ) -> None:
        """Put program and inputs in place and poison where the outputs will be.

        Raises:
            CompileError: one of them does not fit.
        """
        joined = b"".join(inputs)
        size = sum(map(nbytes, specs))
        for window, needed in ((MODEL, len(program)), (INPUTS, len(joined)), (OUTPUTS, size + _POISON_GUARD)):
            require_fit(window, needed)
        memory.write(self._board.guest_address(MODEL.address), program)
        memory.write(self._board.guest_address(INPUTS.address), joined)
        memory.write(self._board.guest_address(OUTPUTS.address), _poison(size + _POISON_GUARD))

    def outputs(self, memory: GuestMemory, specs: Sequence[OutputSpec]) -> tuple[list[bytes], Check]:
        """The bytes of every output, and whether all of them, and nothing behind, were written."""
        sizes = [nbytes(spec) for spec in specs]
        total = sum(sizes)
        found = memory.read(self._board.guest_address(OUTPUTS.address), total + _POISON_GUARD)
        ends = list(itertools.accumulate(sizes, initial=0))
        parts = [found[start:end] for start, end in itertools.pairwise(ends)]
        return parts, _written(found, sizes)

    def evidence(
        self,
        log: str,
        inputs: Sequence[bytes],
        specs: Sequence[OutputSpec],
        jobs: Sequence[NpuJob],
        calls: int,
    ) -> list[Check]:
        """Everything that has to hold before the outputs are believed; the most telling failure first.

        Args:
            log: the console text.
            inputs: the bytes of every input.
            specs: the outputs.
            jobs: what the NPU ran.
            calls: delegate calls in the program; with jumps in it the NPU must have run at least one.
        """
        faults = [f"NPU {type(job.fault).__name__}: {job.fault}" for job in jobs if job.fault]
        error = first_error(log)
        return [
            Check("npu faults", not faults, "; ".join(faults) or "none"),
            Check("firmware errors", error is None, error or "none"),
            _has(log, "firmware banner", _BANNER),
            _has(log, "model loaded", _LOADED),
            _transfer("inputs read", _READ, log, len(inputs), sum(map(len, inputs))),
            Check(
                "npu jobs",
                bool(jobs) or not calls,
                f"{len(jobs)} executed, {calls} delegate calls in the program",
            ),
            _transfer("outputs written", _WRITTEN, log, len(specs), sum(map(nbytes, specs))),
            _has(log, "end marker", _FINISHED),
        ]

    def banner(self, log: str) -> tuple[str, ...]:
        """The lines in which the firmware names itself and what it runs on."""
        lines = (line.removeprefix("INFO - ").strip() for line in log.splitlines())
        return tuple(line for line in lines if any(mark in line for mark in _NAMING))


def require_fit(window: Window, needed: int) -> None:
    """Raise CompileError when `needed` bytes do not fit the window."""
    if needed > window.size:
        missing = needed - window.size
        raise CompileError(
            f"{window.name}: requested {needed} bytes, available {window.size}, missing {missing}",
            where="virtual",
            why=f"Arm's firmware has {window.size // MIB} MiB for its {window.name}",
        )


def first_error(log: str) -> str | None:
    """The first line of the console text that reports an error or a failed assertion, None without one."""
    found = _ERROR_LINE.search(log)
    return found.group() if found else None


def counters(log: str) -> dict[str, int]:
    """The NPU counters the firmware printed, in log lines and metrics block, by lower-case name."""
    found = {counter_name(name): int(value) for name, value in _COUNTER.findall(log)}
    for block in _METRICS.findall(log):
        found |= {counter_name(name): value for name, value in _metrics(block)}
    return found


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


def _has(log: str, name: str, text: str) -> Check:
    return Check(name, text in log, f"{text!r} {'printed' if text in log else 'not printed'}")


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

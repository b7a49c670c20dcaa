# SPDX-License-Identifier: Apache-2.0
"""What the virtual Corstone needs to know of a firmware: how it is fed, and what proves that it succeeded."""

from __future__ import annotations

import abc
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fvp.platform import Check
from fvp.virtual.boards import Board
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.elf import Image
from fvp.virtual.machine import Ending, Hook
from fvp.virtual.process import GuestMemory
from fvp.virtual.semihosting import Settings
from npu.config import Family

_ERROR_LINE = re.compile(r"^(?:E:|E \[|F \[|ERROR\b|F:|Hard fault).*", re.MULTILINE)


@dataclass(frozen=True)
class Workload:
    """One inference as bytes.

    Attributes:
        program: the .pte.
        inputs: of every input, in the program's dimension order.
        output_sizes: bytes of every output.
        delegate_calls: delegate calls in the program; with jumps in it the NPU must run at least one.
        memory_mode: Vela's name, None where it is not known.
        folder: of this run alone, for files.
        run_id: a name that no other run has.
    """

    program: bytes
    inputs: tuple[bytes, ...]
    output_sizes: tuple[int, ...]
    delegate_calls: int
    memory_mode: str | None
    folder: Path
    run_id: str


class Firmware(abc.ABC):
    """A firmware on one board, ready to run one workload.

    Attributes:
        name: what ``--runner`` calls it.
        boards: the board it is made for, by the NPU's family.
        image: the prepared image.
    """

    name: ClassVar[str]
    boards: ClassVar[Mapping[Family, str]]
    image: Image

    @classmethod
    @abc.abstractmethod
    def missing(cls, family: Family) -> str | None:
        """None when it can be had for an NPU of this family, else the reason in one line."""

    @classmethod
    @abc.abstractmethod
    def create(cls, board: Board, workload: Workload) -> Firmware:
        """The firmware, found or built.

        Raises:
            EnvironmentError_: it, or what builds it, is missing.
        """

    def semihosting(self) -> Settings | None:
        """What its semihosting calls get; None when it makes none."""
        return None

    def hooks(self, console: Console, memory: GuestMemory) -> Mapping[int, Hook]:
        """What is done in place of its code, or to help it."""
        return {}

    @abc.abstractmethod
    def load(self, memory: GuestMemory) -> None:
        """Put program and inputs where it looks for them.

        Raises:
            CompileError: something does not fit.
        """

    @abc.abstractmethod
    def outputs(self, memory: GuestMemory) -> tuple[list[bytes], Check]:
        """The bytes of every output, and whether all of them were written in this run."""

    @abc.abstractmethod
    def evidence(self, log: str, jobs: Sequence[NpuJob], ending: Ending) -> list[Check]:
        """Everything that has to hold before the outputs are believed; the most telling failure first."""

    @abc.abstractmethod
    def banner(self, log: str) -> tuple[str, ...]:
        """The lines in which it names itself and what it runs on."""

    @abc.abstractmethod
    def counters(self, log: str) -> dict[str, int]:
        """The NPU counters it printed, by lower-case name."""


def first_error(log: str) -> str | None:
    """The first line of the console text that reports an error or a failed assertion, None without one."""
    found = _ERROR_LINE.search(log)
    return found.group() if found else None


def no_errors(log: str, jobs: Iterable[NpuJob]) -> list[Check]:
    """Neither the NPU nor the firmware reports an error."""
    faults = [f"NPU {type(job.fault).__name__}: {job.fault}" for job in jobs if job.fault]
    error = first_error(log)
    return [
        Check("npu faults", not faults, "; ".join(faults) or "none"),
        Check("firmware errors", error is None, error or "none"),
    ]


def npu_used(jobs: Sequence[NpuJob], calls: int) -> Check:
    """The NPU ran something if the program has something for it."""
    detail = f"{len(jobs)} executed, {calls} delegate calls in the program"
    return Check("npu jobs", bool(jobs) or not calls, detail)

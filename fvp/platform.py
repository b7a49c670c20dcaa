# SPDX-License-Identifier: Apache-2.0
"""The interface of everything that can run a compiled model, and the records it takes and gives.

One `Platform` class per way to run: the virtual Corstone, the host reference, later Arm's own FVPs and
boards. A platform either returns an `Outcome` with positive evidence of success or raises a typed error;
there is no "probably fine" in between.
"""

from __future__ import annotations

import abc
import math
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from npu.timing import Timing
from report.errors import PlatformTimeout, RunFailed

OutputSpec: TypeAlias = tuple[tuple[int, ...], np.dtype]
"""Shape and element type of one output."""


@dataclass(frozen=True)
class Capabilities:
    """What a platform can tell about a run; a reader asks here before it expects a figure.

    Attributes:
        targets: NPU configuration names (``ethos-u85-256`` …) the platform can run.
        nature: of the NPU's counters, see `report.record.NATURES`.
        runners: the firmware it can run, by name, the default first; () where there is no choice.
    """

    targets: frozenset[str]
    nature: str = "simulated"
    runners: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """One inference to run.

    Attributes:
        pte: the ExecuTorch program.
        target: the NPU configuration it was compiled for.
        inputs: one array per program input, in the program's own element types.
        timeout: seconds of wall time the whole run may take.
        verbose: stream the platform's console to standard error while it runs.
        output_specs: shape and element type of every output, in order.
        runner: the firmware, one of the platform's `runners`; None takes the default.
        system_config, memory_mode: what the program was compiled for, Vela's names; None where not known.
        run_id: a name that the firmware repeats at its end.
    """

    pte: Path
    target: str
    inputs: tuple[np.ndarray, ...]
    timeout: float
    verbose: bool
    output_specs: tuple[OutputSpec, ...]
    runner: str | None = None
    memory_mode: str | None = None
    system_config: str | None = None
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class Check:
    """One thing that had to hold for the run to count as a success."""

    name: str
    passed: bool
    detail: str = ""


def printed(log: str, name: str, text: str) -> Check:
    """`text` is in what the platform printed."""
    return Check(name, text in log, f"{text!r} {'printed' if text in log else 'not printed'}")


def require(checks: Sequence[Check], where: str) -> None:
    """Raise RunFailed for the first check that did not hold."""
    for check in checks:
        if not check.passed:
            why = f"{check.name}: {check.detail}"
            raise RunFailed("the run has no proof of success", where=where, why=why)


@dataclass(frozen=True)
class Outcome:
    """What a successful run gave.

    Attributes:
        outputs: arrays of the job's `output_specs`.
        log: the console text of the platform.
        counters: performance counters by lower-case name; None when the platform cannot know the value.
        counters_note: why counters are None; empty when none is.
        npu_seconds: wall time spent executing NPU jobs.
        wall_seconds: wall time of the whole run, start of the simulator to outputs read.
        checks: the evidence that the run succeeded.
        banner: the lines in which firmware and simulator name themselves.
        npu_jobs: command streams the NPU executed.
        timings: cycles of each of them by operation; empty where the platform cannot tell.
        stops: how often the simulated CPU stopped for a device access.
        provenance: names, versions and hashes of the tools and images that took part.
        remarks: what the user should know of how it was run.
    """

    outputs: tuple[np.ndarray, ...]
    log: str
    counters: Mapping[str, int | None]
    npu_seconds: float
    wall_seconds: float
    counters_note: str = ""
    checks: tuple[Check, ...] = ()
    banner: tuple[str, ...] = ()
    npu_jobs: int = 0
    timings: tuple[Timing, ...] = ()
    stops: int = 0
    provenance: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


class Platform(abc.ABC):
    """A way to run a compiled model."""

    name: str
    capabilities: Capabilities
    optional: bool = False
    """Its absence is nothing to warn about."""
    on_request: bool = False
    """Never chosen by ``auto``."""

    @classmethod
    @abc.abstractmethod
    def available(cls) -> str | None:
        """None when the platform can be used on this machine, else the reason why not, in one line."""

    @classmethod
    def available_for(cls, target: str, runner: str | None = None) -> str | None:
        """None when the platform can run `target` on this machine, else the reason why not, in one line.

        Args:
            target: one of its capabilities.
            runner: the firmware that is to run it; ignored where there is no choice.
        """
        return cls.available()

    @abc.abstractmethod
    def run(self, job: Job) -> Outcome:
        """Run one job.

        Raises:
            UsageError: the job does not fit the platform (sizes, target).
            EnvironmentError_: a tool or image is missing.
            RunFailed: the run ended without proof of success.
            PlatformTimeout: the time limit passed first.
        """


class Deadline:
    """A moment after which nothing may wait any more.

    Args:
        seconds: time from now; positive.
        where: what is being timed, for the error message.
    """

    def __init__(self, seconds: float, where: str = "") -> None:
        self.seconds, self.where = seconds, where
        self._end = time.monotonic() + seconds

    def remaining(self, doing: str) -> float:
        """Seconds left, always positive.

        Raises:
            PlatformTimeout: none is left; `doing` names what was waited for.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise PlatformTimeout(
                f"no result within {self.seconds:g} s",
                where=self.where,
                why=doing,
                hint="raise the limit with --timeout",
            )
        return left


def nbytes(spec: OutputSpec) -> int:
    """Bytes one output of `spec` takes."""
    shape, dtype = spec
    return math.prod(shape) * np.dtype(dtype).itemsize

# SPDX-License-Identifier: Apache-2.0
"""The virtual Corstone as a platform: one whole run, from the job to its proven outputs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fvp.platform import Capabilities, Check, Deadline, Job, Outcome, Platform, require
from fvp.virtual import tools
from fvp.virtual.boards import BOARDS, Board
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.firmware import Firmware, first_error
from fvp.virtual.gdb import GdbClient, StubError
from fvp.virtual.machine import Ending, Machine
from fvp.virtual.mlek import MlekFirmware
from fvp.virtual.process import GuestGone, QemuProcess
from fvp.virtual.runner import RunnerFirmware
from fvp.workload import restored, workload
from npu.config import CONFIGS, Family, npu_config
from npu.timing import TimingProfile, profile_for
from npu.timing.profile import UnknownProfile
from report.errors import ArmdeployError, PlatformTimeout, RunFailed, UsageError

NAME = "virtual"

FIRMWARES: dict[str, type[Firmware]] = {kind.name: kind for kind in (RunnerFirmware, MlekFirmware)}
"""By the name that ``--runner`` takes, the default first."""


class VirtualCorstone(Platform):
    """Firmware on qemu-arm, with the board's devices and the NPU modelled here."""

    name = NAME
    capabilities = Capabilities(targets=frozenset(CONFIGS), runners=tuple(FIRMWARES))

    @classmethod
    def available(cls) -> str | None:
        """None when qemu-arm is here."""
        if tools.find_qemu():
            return None
        return f"qemu-arm is not installed; run ./setup.sh or set {tools.QEMU_VARIABLE}"

    @classmethod
    def available_for(cls, target: str, runner: str | None = None) -> str | None:
        """None when qemu-arm and a firmware for the target's board (the one asked for) are here."""
        family = npu_config(target).family
        if runner is None:
            return cls.available() or _default(family)[0].missing(family)
        return cls.available() or _firmware(runner).missing(family)

    def run(self, job: Job) -> Outcome:
        """Run one inference of the job's program in the firmware.

        Raises:
            UsageError: the program is damaged, or inputs or outputs are not the program's.
            CompileError: program, inputs or outputs do not fit the board.
            EnvironmentError_: QEMU or the firmware is missing or too old.
            RunFailed: no proof of success; `log` holds the console text.
            PlatformTimeout: the time limit passed; `log` as well.
        """
        console = Console.for_run(job.verbose)
        with tempfile.TemporaryDirectory(prefix="armdeploy-run-") as folder:
            prepared = _prepare(job, Path(folder))
            try:
                return _Run(job, prepared, console).outcome()
            except ArmdeployError as error:
                error.log = console.text
                said = first_error(console.text)
                error.why += f"; the firmware said: {said}" if said else ""
                raise


def _firmware(runner: str) -> type[Firmware]:
    """The kind of firmware of that name.

    Raises:
        UsageError: there is none of that name.
    """
    if runner not in FIRMWARES:
        raise UsageError(
            f"unknown runner {runner!r}", where="--runner", hint=f"known: {', '.join(FIRMWARES)}"
        )
    return FIRMWARES[runner]


def _default(family: Family) -> tuple[type[Firmware], tuple[str, ...]]:
    """The first kind of firmware that can be had, and why not the ones before; the first when none can."""
    reasons: list[str] = []
    for kind in FIRMWARES.values():
        missing = kind.missing(family)
        if missing is None:
            return kind, tuple(reasons)
        reasons.append(f"not run in --runner {kind.name}: {missing}")
    return next(iter(FIRMWARES.values())), ()


@dataclass(frozen=True)
class _Prepared:
    """A job with everything read, checked and built before the simulator starts."""

    board: Board
    firmware: Firmware
    output_orders: tuple[tuple[int, ...], ...]
    remarks: tuple[str, ...]


def _prepare(job: Job, folder: Path) -> _Prepared:
    family = npu_config(job.target).family
    kind, remarks = _default(family) if job.runner is None else (_firmware(job.runner), ())
    if family not in kind.boards:
        raise UsageError(str(kind.missing(family)), where=NAME)
    board = BOARDS[kind.boards[family]]
    load, orders = workload(job, folder, NAME)
    return _Prepared(board, kind.create(board, load), orders, remarks)


class _Run:
    """One run; its parts share the job, what was prepared and the console."""

    def __init__(self, job: Job, prepared: _Prepared, console: Console) -> None:
        self._job, self._prepared, self._console = job, prepared, console
        self._firmware = prepared.firmware
        self._qemu = tools.require_qemu()

    def outcome(self) -> Outcome:
        """Start the simulator, run, judge.

        Raises:
            RunFailed, PlatformTimeout: see `VirtualCorstone.run`.
        """
        started = time.perf_counter()
        deadline = Deadline(self._job.timeout, NAME)
        with QemuProcess(
            self._qemu, self._prepared.board.qemu_cpu, self._firmware.image.path, deadline
        ) as qemu:
            try:
                machine, ending = self._execute(qemu, deadline)
                data, changed = self._firmware.outputs(qemu.memory)
                wall = time.perf_counter() - started
            except PlatformTimeout as error:
                why = error.why + self._last_line()
                raise PlatformTimeout(error.what, where=error.where, why=why, hint=error.hint) from None
            except (StubError, GuestGone) as error:
                why = f"{error}; {qemu.last_words()}{self._last_line()}"
                raise RunFailed("the simulator went away", where=NAME, why=why) from error
        log, jobs = self._console.text, machine.npu.jobs
        checks = (*self._firmware.evidence(log, jobs, ending), changed)
        require(checks, NAME)
        return self._result(data, machine, checks, wall)

    def _execute(self, qemu: QemuProcess, deadline: Deadline) -> tuple[Machine, Ending]:
        """The machine after its run, and how that ended."""
        firmware, memory = self._firmware, qemu.memory
        client = GdbClient(qemu.connection, deadline)
        client.handshake()  # QEMU answers when the guest's memory is mapped
        firmware.load(memory)
        machine = Machine(
            self._prepared.board,
            npu_config(self._job.target),
            firmware.image,
            memory,
            self._console,
            deadline,
            semihosting=firmware.semihosting(),
            timing=_timing(self._job),
        )
        return machine, machine.run(client, firmware.hooks(self._console, memory))

    def _last_line(self) -> str:
        lines = self._console.text.split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"; last console line: {last}" if last else "; the console is empty"

    def _result(
        self, data: Sequence[bytes], machine: Machine, checks: tuple[Check, ...], wall: float
    ) -> Outcome:
        log, jobs, prepared = self._console.text, machine.npu.jobs, self._prepared
        specs = zip(data, self._job.output_specs, prepared.output_orders, strict=True)
        note, uncounted = _counters_note(jobs), {event for job in jobs for event in job.uncounted}
        return Outcome(
            outputs=tuple(
                restored(part, shape, np.dtype(dtype), order) for part, (shape, dtype), order in specs
            ),
            log=log,
            counters={
                name: None if name.upper() in uncounted else value
                for name, value in self._firmware.counters(log).items()
            },
            counters_note=note,
            npu_seconds=sum(job.seconds for job in jobs),
            wall_seconds=wall,
            checks=checks,
            banner=self._firmware.banner(log),
            npu_jobs=len(jobs),
            timings=tuple(job.timing for job in jobs if job.timing is not None),
            stops=machine.stops,
            provenance={**self._provenance(), "timing_adapter": machine.adapters.profile().name},
            remarks=prepared.remarks,
        )

    def _provenance(self) -> dict[str, str]:
        board, image = self._prepared.board, self._firmware.image
        version = ".".join(map(str, tools.qemu_version(self._qemu)))
        return {
            "board": board.name,
            "cpu": board.cpu,
            "emulator": f"qemu-arm {version}, -cpu {board.qemu_cpu}",
            "firmware": image.source.name,
            "runner": self._firmware.name,
            "firmware_sha256": image.sha256,
        }


def _timing(job: Job) -> TimingProfile | None:
    """What ExecuTorch's own runner programs for the system that the program is compiled for, if known."""
    if job.system_config is None or job.memory_mode is None:
        return None
    try:
        return profile_for(job.system_config, job.memory_mode)
    except UnknownProfile:
        return None


def _counters_note(jobs: Sequence[NpuJob]) -> str:
    """Why the counters that the firmware read mean nothing; empty if they do."""
    uncounted = sorted({event for job in jobs for event in job.uncounted})
    if uncounted:
        return f"the NPU model does not count {', '.join(uncounted)}"
    return "" if jobs else "the NPU ran no job"

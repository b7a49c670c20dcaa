# SPDX-License-Identifier: Apache-2.0
"""The Cortex-A platforms: emulated, this machine where it is one, and others behind ssh and adb."""

from __future__ import annotations

import abc
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fvp.aarch64 import adb, bundle, profile, ssh, tools
from fvp.aarch64.options import CpuRun
from fvp.aarch64.remote import Connection, Remote
from fvp.aarch64.runner import Emulated, Ended, Machine, Native, RunnerJob, run
from fvp.platform import Capabilities, Job, Outcome, Platform
from fvp.workload import restored, workload
from report import pte
from report.cortex_a import TARGETS, CpuTarget
from report.cpu_profile import DEFAULT_POWER, PINNED, CpuProfile
from report.errors import EnvironmentError_

NO_LATENCY = "instructions are counted, time means nothing on an emulator"

_ON_HARDWARE = frozenset({"threads", "warmup", "repetitions", "pinned"})
_WARMUP, _REPETITIONS = 3, 10
_ISAS = ("neon", "sme", "sme2")
"""From less to more."""


class CortexAPlatform(Platform):
    """A way to run executor_runner.

    Attributes:
        emulated: instructions are counted; otherwise time is measured.
        knows: which of `CpuRun` mean something here.
    """

    emulated: bool
    knows: frozenset[str]
    options = CpuRun()

    def configure(self, options: CpuRun) -> None:
        """Take what the user chose; raises UsageError for what means nothing here."""
        options.require(self.knows, f"--platform {self.name}")
        self.options = options

    @abc.abstractmethod
    def machine(self, built: bundle.Bundle, threads: int) -> Machine:
        """What executes the runner of `built`; raises UsageError, EnvironmentError_."""

    def run(self, job: Job) -> Outcome:
        """Run one job; see `Platform.run`."""
        return self.profiled(job)[0]

    def profiled(self, job: Job, threads: int = 1) -> tuple[Outcome, CpuProfile]:
        """Run one job with its last inference profiled; on hardware also, before that, without a profiler.

        Raises:
            as `Platform.run`; EtdumpError, a UsageError, for a damaged profile; EnvironmentError_ for a CPU
            without the target's instructions.
        """
        started = time.perf_counter()
        target, built = TARGETS[job.target], bundle.build()
        machine = self.machine(built, threads)
        with tempfile.TemporaryDirectory(prefix="armdeploy-") as folder:
            work, orders = workload(job, Path(folder), self.name)
        request = RunnerJob(
            program=work.program,
            inputs=work.inputs,
            output_sizes=work.output_sizes,
            isa=target.isa,
            timeout=job.timeout,
            counted=self.emulated,
            threads=threads,
            run_id=job.run_id,
        )
        latencies = () if self.emulated else self._latencies(machine, request, target)
        ended = run(machine, request)
        make = profile.counted if self.emulated else profile.timed
        costs = make(ended, target, _operators(work.program, str(job.pte)))
        power = PINNED if self.options.pinned else DEFAULT_POWER
        outcome = Outcome(
            outputs=_outputs(ended, job, orders),
            log=ended.log,
            counters={},
            npu_seconds=0.0,
            wall_seconds=time.perf_counter() - started,
            checks=ended.checks,
            provenance={**machine.describe(), "runner_sha256": built.sha256()},
        )
        return outcome, replace(costs, threads=threads, power=power, latencies=latencies)

    def _latencies(self, machine: Machine, job: RunnerJob, target: CpuTarget) -> tuple[int, ...]:
        """Nanoseconds of inferences in a process of their own: the profiler of the other one takes time."""
        warmup, repetitions = self.options.warmup, self.options.repetitions
        timed = replace(
            job,
            profile=False,
            warmup=_WARMUP if warmup is None else warmup,
            inferences=_REPETITIONS if repetitions is None else repetitions,
        )
        ended = run(machine, timed)
        if _ISAS.index(ended.cpu_isa) < _ISAS.index(target.isa):
            has = ended.cpu_isa.upper()
            why = f"its CPU has no more than {has}" if has != "NEON" else "its CPU has neither SME nor SME2"
            hint = f"run with --target cortex-a-{ended.cpu_isa}"
            raise EnvironmentError_(f"cannot run {target.name}", where=self.name, why=why, hint=hint)
        return ended.latencies


def _operators(program: bytes, where: str) -> list[str]:
    """Name of each instruction's operator, "" for instructions of other kinds."""
    instructions = pte.parse(program, where).method().instructions
    return [item.operator if isinstance(item, pte.KernelCall) else "" for item in instructions]


def _outputs(ended: Ended, job: Job, orders: Sequence[Sequence[int]]) -> tuple[np.ndarray, ...]:
    return tuple(
        restored(data, shape, np.dtype(dtype), order)
        for data, (shape, dtype), order in zip(ended.outputs, job.output_specs, orders, strict=True)
    )


class Aarch64Native(CortexAPlatform):
    """This machine, where it is AArch64 Linux: time is measured."""

    name = "aarch64-native"
    capabilities = Capabilities(targets=frozenset(TARGETS))
    optional = True
    emulated = False
    knows = _ON_HARDWARE

    @classmethod
    def available(cls) -> str | None:
        """None, or why not."""
        if (platform.system(), platform.machine()) != ("Linux", "aarch64"):
            return f"this machine is {platform.machine()} {platform.system()}, not AArch64 Linux"
        return bundle.missing()

    def machine(self, built: bundle.Bundle, threads: int) -> Machine:
        return Native(built.command(), threads if self.options.pinned else 0)


class Aarch64Emulated(CortexAPlatform):
    """Stock qemu-aarch64: instructions are counted, by operator and class, in one thread."""

    name = "aarch64-emulated"
    capabilities = Capabilities(targets=frozenset(TARGETS))
    emulated = True
    knows = frozenset()

    @classmethod
    def available(cls) -> str | None:
        """None, or why not."""
        try:
            tools.require_qemu()
        except EnvironmentError_ as error:
            return error.one_line()
        return bundle.missing()

    def machine(self, built: bundle.Bundle, threads: int) -> Machine:
        qemu, version = tools.require_qemu()
        return Emulated(qemu, version, built.command())


class _Elsewhere(CortexAPlatform):
    """Another machine: time is measured. Used only when it is asked for by name."""

    capabilities = Capabilities(targets=frozenset(TARGETS))
    optional = True
    on_request = True
    emulated = False
    _connection: Connection | None = None

    @abc.abstractmethod
    def connect(self) -> Connection:
        """Reach the machine that the options name; raises UsageError, EnvironmentError_."""

    def machine(self, built: bundle.Bundle, threads: int) -> Machine:
        if self._connection is None:
            self._connection = self.connect()
        return Remote(self._connection, built, threads if self.options.pinned else 0)


class OverSsh(_Elsewhere):
    """An AArch64 Linux machine behind ssh."""

    name = "ssh"
    knows = _ON_HARDWARE | {"host"}

    @classmethod
    def available(cls) -> str | None:
        """None, or why not."""
        return ssh.missing() or bundle.missing()

    def connect(self) -> Connection:
        return ssh.Ssh(self.options.host)


class OverAdb(_Elsewhere):
    """An Android phone behind adb."""

    name = "adb"
    knows = _ON_HARDWARE | {"serial"}

    @classmethod
    def available(cls) -> str | None:
        """None, or why not."""
        return adb.missing() or bundle.missing()

    def connect(self) -> Connection:
        return adb.Adb(self.options.serial)

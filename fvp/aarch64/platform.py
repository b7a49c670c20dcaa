# SPDX-License-Identifier: Apache-2.0
"""The Cortex-A platforms: emulated, and this machine where it is one."""

from __future__ import annotations

import abc
import platform
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fvp.aarch64 import bundle, profile, tools
from fvp.aarch64.runner import Emulated, Ended, Machine, Native, RunnerJob, run
from fvp.platform import Capabilities, Job, Outcome, Platform
from fvp.workload import restored, workload
from report import pte
from report.cortex_a import TARGETS, CpuTarget
from report.cpu_profile import CpuProfile
from report.errors import EnvironmentError_

NO_LATENCY = "instructions are counted, time means nothing on an emulator"


class CortexAPlatform(Platform):
    """A way to run executor_runner.

    Attributes:
        emulated: instructions are counted; otherwise time is measured.
    """

    emulated: bool

    @abc.abstractmethod
    def machine(self, built: bundle.Bundle) -> Machine:
        """What executes the runner of `built`; raises EnvironmentError_."""

    def run(self, job: Job) -> Outcome:
        """Run one job; see `Platform.run`."""
        return self.profiled(job)[0]

    def profiled(self, job: Job, threads: int = 1) -> tuple[Outcome, CpuProfile]:
        """Run one job, the second of two inferences profiled.

        Raises:
            as `Platform.run`; EtdumpError, a UsageError, for a damaged profile.
        """
        started = time.perf_counter()
        target, built = TARGETS[job.target], bundle.build()
        machine = self.machine(built)
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
        ended = run(machine, request)
        costs = self._profile(ended, target, _operators(work.program, str(job.pte)))
        outcome = Outcome(
            outputs=_outputs(ended, job, orders),
            log=ended.log,
            counters={},
            npu_seconds=0.0,
            wall_seconds=time.perf_counter() - started,
            checks=ended.checks,
            provenance={**machine.describe(), "runner_sha256": built.sha256()},
        )
        return outcome, costs

    def _profile(self, ended: Ended, target: CpuTarget, operators: Sequence[str]) -> CpuProfile:
        make = profile.counted if self.emulated else profile.timed
        return make(ended, target, operators)


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

    @classmethod
    def available(cls) -> str | None:
        """None, or why not."""
        if (platform.system(), platform.machine()) != ("Linux", "aarch64"):
            return f"this machine is {platform.machine()} {platform.system()}, not AArch64 Linux"
        return bundle.missing()

    def machine(self, built: bundle.Bundle) -> Machine:
        return Native(built.command())


class Aarch64Emulated(CortexAPlatform):
    """Stock qemu-aarch64: instructions are counted, by operator and class."""

    name = "aarch64-emulated"
    capabilities = Capabilities(targets=frozenset(TARGETS), cpu_instructions=True)
    emulated = True

    @classmethod
    def available(cls) -> str | None:
        """None, or why not."""
        try:
            tools.require_qemu()
        except EnvironmentError_ as error:
            return error.one_line()
        return bundle.missing()

    def machine(self, built: bundle.Bundle) -> Machine:
        qemu, version = tools.require_qemu()
        return Emulated(qemu, version, built.command())

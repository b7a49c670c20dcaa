# SPDX-License-Identifier: Apache-2.0
"""Arm's FVP as a platform: the same runner, the same command line as ExecuTorch's own tests use."""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fvp.arm import log as fvp_log
from fvp.arm import programs
from fvp.arm.programs import Program
from fvp.platform import Capabilities, Check, Job, Outcome, Platform, printed, require
from fvp.virtual import runner_build
from fvp.virtual.boards import BOARDS
from fvp.virtual.firmware import Workload, first_error, no_errors
from fvp.virtual.process import ending, run_briefly
from fvp.virtual.runner import RunnerFirmware
from fvp.workload import restored, workload
from npu.config import CONFIGS, npu_config
from report.errors import ArmdeployError, EnvironmentError_, PlatformTimeout, UsageError

NAME = "fvp"
_GRACE_SECONDS = 10.0
"""What the FVP gets beyond its own time limit to end by itself."""

_TIME_LIMIT = "CPU time has been exceeded"
_WITH_DISPLAY = "mps4_board"

_LONGEST_COMMAND_LINE = 256
"""An FVP cuts a longer semihosting command line off."""


class ArmFvp(Platform):
    """Arm's Corstone FVPs with this project's semihosting runner.

    Args:
        program: the simulator to use; None looks for Arm's.
    """

    name = NAME
    optional = True
    capabilities = Capabilities(targets=frozenset(CONFIGS), nature="measured", runners=(RunnerFirmware.name,))

    def __init__(self, program: Program | None = None) -> None:
        self._program = program

    @classmethod
    def available(cls) -> str | None:
        """None when an FVP for some NPU is installed."""
        if any(programs.find(config.family) for config in CONFIGS.values()):
            return runner_build.missing_tools()
        return f"no Arm FVP on PATH or below ${programs.ROOT_VARIABLE}; see ./setup.sh --enable-fvps"

    @classmethod
    def available_for(cls, target: str, runner: str | None = None) -> str | None:
        """None when the FVP with the target's NPU is installed."""
        if runner not in (None, *cls.capabilities.runners):
            return f"the {NAME} platform does not run {runner}"
        if programs.find(npu_config(target).family) is None:
            return f"no Arm FVP for {target} on PATH or below ${programs.ROOT_VARIABLE}"
        return runner_build.missing_tools()

    def run(self, job: Job) -> Outcome:
        """Run one inference.

        Raises:
            UsageError: the program is damaged, or inputs or outputs are not the program's.
            EnvironmentError_: the FVP or what builds the runner is missing.
            RunFailed: no proof of success; `log` holds the output.
            PlatformTimeout: the time limit passed; `log` as well.
        """
        program = self._program or programs.find(npu_config(job.target).family)
        if program is None:
            raise EnvironmentError_(str(self.available_for(job.target)), where=NAME)
        with tempfile.TemporaryDirectory(prefix="armdeploy-run-") as folder:
            load, orders = workload(job, Path(folder), NAME)
            board = BOARDS[RunnerFirmware.boards[npu_config(job.target).family]]
            firmware = RunnerFirmware.create(board, load)
            return _Run(job, program, firmware, load).outcome(orders)


class _Run:
    """One simulation and its proof."""

    def __init__(self, job: Job, program: Program, firmware: RunnerFirmware, load: Workload) -> None:
        self._job, self._program, self._firmware, self._load = job, program, firmware, load

    def outcome(self, orders: Sequence[tuple[int, ...]]) -> Outcome:
        """Run, judge, read the outputs.

        Raises:
            RunFailed, PlatformTimeout: see `ArmFvp.run`.
        """
        self._firmware.write_files()
        started = time.perf_counter()
        status, log = run_briefly(self.command(), self._job.timeout + _GRACE_SECONDS, whole=True)
        wall = time.perf_counter() - started
        if self._job.verbose:
            print(log, file=sys.stderr)
        try:
            simulation = fvp_log.parse(log)
            self._require_in_time(status, simulation)
            data, written = self._firmware.output_files()
            checks = (*self._evidence(status, log), written)
            require(checks, NAME)
        except ArmdeployError as error:
            error.log = log
            said = first_error(log)
            error.why += f"; the firmware said: {said}" if said else ""
            raise
        return self._result(data, log, checks, wall, orders)

    def command(self) -> list[str]:
        """The FVP's command line, as ExecuTorch's tests write it.

        Raises:
            UsageError: the runner's own command line is too long for an FVP.
        """
        model, settings = self._program.model, self._firmware.semihosting()
        line = settings.command_line
        if len(line) > _LONGEST_COMMAND_LINE:
            raise UsageError(
                f"the runner's command line has {len(line)} characters",
                where=NAME,
                why=f"an FVP takes {_LONGEST_COMMAND_LINE}",
            )
        keys = {
            f"{model.npu}.num_macs": npu_config(self._job.target).macs,
            f"{model.peripherals}.visualisation.disable-visualisation": 1,
            f"{model.peripherals}.telnetterminal0.start_telnet": 0,
            f"{model.peripherals}.uart0.out_file": "'-'",
            f"{model.cpu}.semihosting-enable": 1,
            f"{model.cpu}.semihosting-stack_base": 0,
            f"{model.cpu}.semihosting-heap_limit": 0,
            f"{model.cpu}.semihosting-cwd": settings.folder,
            f"{model.cpu}.semihosting-cmd_line": f"'{line}'",
        }
        if model.peripherals == _WITH_DISPLAY:
            keys["vis_hdlcd.disable_visualisation"] = 1
        parameters = [part for key, value in keys.items() for part in ("-C", f"{key}={value}")]
        limit = f"{math.ceil(self._job.timeout)}"
        elf = str(self._firmware.image.source)
        return [str(self._program.path), *parameters, "-a", elf, "--timelimit", limit, "--stat"]

    def _require_in_time(self, status: int | None, simulation: fvp_log.Simulation) -> None:
        if status is None or simulation.limit == _TIME_LIMIT:
            raise PlatformTimeout(
                f"no result within {self._job.timeout:g} s",
                where=NAME,
                why=f"{self._program.path.name} was still simulating",
                hint="raise the limit with --timeout",
            )

    def _evidence(self, status: int | None, log: str) -> list[Check]:
        return [
            *no_errors(log, ()),
            Check("exit status", status == 0, f"{self._program.path.name} {ending(status)}"),
            printed(log, "firmware banner", "[executorch:arm_executor_runner] corstone-"),
            printed(log, "end marker", f"run {self._load.run_id} ended with exit status 0"),
        ]

    def _result(
        self,
        data: Sequence[bytes],
        log: str,
        checks: tuple[Check, ...],
        wall: float,
        orders: Sequence[tuple[int, ...]],
    ) -> Outcome:
        specs = zip(data, self._job.output_specs, orders, strict=True)
        counters = self._firmware.counters(log)
        note = "the open virtual platform stands in for the FVP" if self._program.open_platform else ""
        return Outcome(
            outputs=tuple(
                restored(part, shape, np.dtype(kind), order) for part, (shape, kind), order in specs
            ),
            log=log,
            counters={name: None if note else value for name, value in counters.items()},
            counters_note=note,
            npu_seconds=0.0,
            wall_seconds=wall,
            checks=checks,
            banner=self._firmware.banner(log),
            provenance=self._provenance(),
        )

    def _provenance(self) -> dict[str, str]:
        image = self._firmware.image
        return {
            "board": self._program.model.board,
            "simulator": f"{self._program.path.name}: {self._program.version}",
            "simulator_sha256": self._program.sha256(),
            "firmware": image.source.name,
            "firmware_sha256": image.sha256,
        }

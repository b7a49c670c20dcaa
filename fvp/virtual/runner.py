# SPDX-License-Identifier: Apache-2.0
"""The project's own arm_executor_runner as firmware of the virtual Corstone.

Program, inputs and outputs are files of the run's folder, which it reaches through semihosting.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from fvp.platform import Check, printed
from fvp.virtual import runner_build
from fvp.virtual.boards import Board
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.elf import prepare
from fvp.virtual.firmware import Firmware, Workload, no_errors, npu_used
from fvp.virtual.machine import Ending, Reason
from fvp.virtual.process import GuestMemory
from fvp.virtual.semihosting import Settings
from npu.config import Family

_PROGRAM, _OUTPUT = "program.pte", "out"
_NAMING = re.compile(r"^I \[executorch:arm_executor_runner\] (corstone-\S+, .*)$", re.MULTILINE)
_CYCLES = re.compile(r"^ethosu_pmu_cycle_cntr : (\d+)", re.MULTILINE)
_COUNTER = re.compile(r"^ethosu_pmu_cntr\d+ : (\d+) \(ETHOSU_PMU_(\w+)\)$", re.MULTILINE)


class RunnerFirmware(Firmware):
    """arm_executor_runner with every kernel, built on first use.

    Args:
        board: where it runs.
        workload: what it runs.
        build: how it is built.
    """

    name = "ours"
    boards = runner_build.BOARD_OF

    def __init__(self, board: Board, workload: Workload, build: runner_build.RunnerBuild) -> None:
        self._workload = workload
        if not (build.folder() / runner_build.NAME).exists():
            print(f"building {runner_build.NAME} for {board.name}, {build.memory_mode}", file=sys.stderr)
        self.image = prepare(runner_build.build(build), board)

    @classmethod
    def missing(cls, family: Family) -> str | None:
        """None when there is all that a build needs."""
        return runner_build.missing_tools()

    @classmethod
    def create(cls, board: Board, workload: Workload) -> RunnerFirmware:
        """The runner for the board and the memory mode that the program was compiled for.

        Raises:
            EnvironmentError_, CompileError: see `runner_build.build`.
        """
        family = next(family for family, name in cls.boards.items() if name == board.name)
        scratch = runner_build.scratch_bytes(workload.program)
        return cls(board, workload, runner_build.for_family(family, workload.memory_mode, scratch))

    def semihosting(self) -> Settings:
        """Its command line, and the run's folder for its files."""
        inputs = " ".join(f"-i {_input(i)}" for i in range(len(self._workload.inputs)))
        line = f"executor_runner -m {_PROGRAM} {inputs} -o {_OUTPUT} --run-id {self._workload.run_id}"
        return Settings(self._workload.folder, line)

    def load(self, memory: GuestMemory) -> None:
        """Write program and inputs to the run's folder."""
        self.write_files()

    def write_files(self) -> None:
        """Write program and inputs to the run's folder."""
        (self._workload.folder / _PROGRAM).write_bytes(self._workload.program)
        for number, data in enumerate(self._workload.inputs):
            (self._workload.folder / _input(number)).write_bytes(data)

    def outputs(self, memory: GuestMemory) -> tuple[list[bytes], Check]:
        """The files it wrote."""
        return self.output_files()

    def output_files(self) -> tuple[list[bytes], Check]:
        """The bytes of every output file; the folder held none of them before."""
        name = "outputs written"
        parts: list[bytes] = []
        for number, size in enumerate(self._workload.output_sizes):
            path = self._workload.folder / f"{_OUTPUT}-{number}.bin"
            if not path.is_file():
                return parts, Check(name, False, f"{path.name} was not written")
            parts.append(path.read_bytes())
            if len(parts[-1]) != size:
                detail = f"{path.name} has {len(parts[-1])} bytes in place of {size}"
                return parts, Check(name, False, detail)
        return parts, Check(name, True, f"{len(parts)} file(s), {sum(map(len, parts))} bytes")

    def evidence(self, log: str, jobs: Sequence[NpuJob], ending: Ending) -> list[Check]:
        """See `Firmware.evidence`; the last line has to name this very run."""
        exited = ending.reason is Reason.EXIT and ending.status == 0
        detail = f"{ending.reason.value}, status {ending.status}"
        return [
            *no_errors(log, jobs),
            printed(log, "firmware banner", "[executorch:arm_executor_runner] corstone-"),
            printed(log, "model loaded", "loaded."),
            npu_used(jobs, self._workload.delegate_calls),
            Check("exit status", exited, f"{detail}; {ending.detail}" if ending.detail else detail),
            printed(log, "end marker", f"run {self._workload.run_id} ended with exit status 0"),
        ]

    def banner(self, log: str) -> tuple[str, ...]:
        """Board and memory mode."""
        return tuple(f"{runner_build.NAME}: {line}" for line in _NAMING.findall(log))

    def counters(self, log: str) -> dict[str, int]:
        """Cycles while the NPU was active, idle ones, their sum, and the events of its counters."""
        found = {name.lower(): int(value) for value, name in _COUNTER.findall(log)}
        cycles = _CYCLES.search(log)
        if cycles is None:
            return found
        active, idle = int(cycles[1]), found.pop("npu_idle", 0)
        return {"npu_active": active, "npu_idle": idle, "npu_total": active + idle, **found}


def _input(number: int) -> str:
    return f"i{number}.bin"

# SPDX-License-Identifier: Apache-2.0
"""One process of executor_runner on some machine: its files, its command line, the proof of its end."""

from __future__ import annotations

import abc
import platform
import re
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fvp.aarch64 import cores
from fvp.aarch64.following import Follower
from fvp.aarch64.trace import QEMU_OPTIONS, Trace, TraceReader
from fvp.platform import Check, printed, require
from fvp.virtual.process import ending, run_briefly
from report.errors import PlatformTimeout, RunFailed

PROGRAM, ETDUMP, MAPS, OUTPUT = "program.pte", "profile.etdp", "maps", "out"
_BRIEFLY = 10.0
_TICK = re.compile(r"^I clock call (\d+) is tick (\d+)$", re.MULTILINE)
_CPU = re.compile(r"^I executor_runner: cpu has (\w+),", re.MULTILINE)
_LATENCY = re.compile(r"^I inference \d+ took (\d+) ns$", re.MULTILINE)


@dataclass(frozen=True)
class RunnerJob:
    """What the runner is to do.

    Attributes:
        program: the .pte's bytes.
        inputs: of every input, as the program takes them.
        output_sizes: bytes of every output.
        isa: what the libraries may use: sme2, sme or neon.
        counted: the clock counts its calls (one thread, on an emulator).
        warmup: inferences before those that count.
        profile: record an ETDump.
    """

    program: bytes
    inputs: tuple[bytes, ...]
    output_sizes: tuple[int, ...]
    isa: str
    timeout: float
    counted: bool = False
    profile: bool = True
    threads: int = 1
    inferences: int = 1
    warmup: int = 1
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def arguments(self) -> list[str]:
        """The runner's options; every file is in the folder it runs in."""
        inputs = [f"--input=input-{number}.bin" for number in range(len(self.inputs))]
        words = [f"--model={PROGRAM}", *inputs, f"--output={OUTPUT}", f"--isa={self.isa}"]
        words += [
            f"--threads={self.threads}",
            f"--num-inferences={self.inferences}",
            f"--warmup={self.warmup}",
        ]
        words += [f"--etdump={ETDUMP}"] if self.profile else []
        words += ["--clock=calls", f"--maps={MAPS}"] if self.counted else []
        return [*words, f"--run-id={self.run_id}"]


@dataclass(frozen=True)
class Ended:
    """A process that ended well.

    Attributes:
        outputs: bytes of every output.
        etdump: the profile, b"" when none was asked for.
        trace: what was executed, None when nobody counted; `maps` is the memory map then.
        tick: a call of the counting clock, and the ETDump's tick at it.
        latencies: nanoseconds of each inference by the machine's clock; () with a counting one.
        cpu_isa: what the CPU has: sme2, sme or neon.
    """

    outputs: tuple[bytes, ...]
    log: str
    checks: tuple[Check, ...]
    etdump: bytes = b""
    trace: Trace | None = None
    maps: str = ""
    tick: tuple[int, int] = (0, 0)
    latencies: tuple[int, ...] = ()
    cpu_isa: str = "neon"


class Machine(abc.ABC):
    """Something that executes AArch64 Linux programs."""

    name: str
    """Of the platform, for messages."""

    @abc.abstractmethod
    def describe(self) -> dict[str, str]:
        """What it is, for the run record."""

    @abc.abstractmethod
    def execute(
        self, folder: Path, arguments: Sequence[str], seconds: float, trace_to: Path | None
    ) -> tuple[int | None, str]:
        """Run executor_runner in `folder` and leave its files there.

        Args:
            arguments: of the runner; file names are relative to `folder`.
            trace_to: the file that the emulator's log goes to; None for no log.

        Returns:
            Exit status (None when it did not end within `seconds`) and console text.

        Raises:
            EnvironmentError_: the machine cannot be reached or started.
        """


def run(machine: Machine, job: RunnerJob) -> Ended:
    """Run one job in a folder of its own.

    Raises:
        EnvironmentError_: the machine cannot be used.
        RunFailed: it ended without proof of success; `log` has the console text.
        PlatformTimeout: it did not end in time.
    """
    with tempfile.TemporaryDirectory(prefix="armdeploy-") as name:
        folder = Path(name)
        (folder / PROGRAM).write_bytes(job.program)
        for number, data in enumerate(job.inputs):
            (folder / f"input-{number}.bin").write_bytes(data)
        reader = TraceReader(folder / MAPS) if job.counted else None
        status, log = _execute(machine, job, folder, reader)
        try:
            return _read(machine, job, folder, status, log, reader)
        except (RunFailed, PlatformTimeout) as error:
            error.log = log
            raise


def _execute(
    machine: Machine, job: RunnerJob, folder: Path, reader: TraceReader | None
) -> tuple[int | None, str]:
    if reader is None:
        return machine.execute(folder, job.arguments(), job.timeout, None)
    pipe = folder / "trace"
    with Follower(pipe, reader.feed):
        return machine.execute(folder, job.arguments(), job.timeout, pipe)


def _read(
    machine: Machine, job: RunnerJob, folder: Path, status: int | None, log: str, reader: TraceReader | None
) -> Ended:
    """What the process left, after the proof that it ended well."""
    if status is None:
        raise PlatformTimeout(
            f"no result within {job.timeout:g} s", where=machine.name, hint="raise the limit with --timeout"
        )
    checks = _checks(job, folder, status, log)
    require(checks, machine.name)
    tick, cpu = _TICK.search(log), _CPU.search(log)
    return Ended(
        outputs=tuple(_output(folder, number).read_bytes() for number in range(len(job.output_sizes))),
        log=log,
        checks=checks,
        etdump=(folder / ETDUMP).read_bytes() if job.profile else b"",
        trace=reader.finish() if reader is not None else None,
        maps=(folder / MAPS).read_text(encoding="utf-8") if reader is not None else "",
        tick=(int(tick[1]), int(tick[2])) if tick else (0, 0),
        latencies=tuple(int(match[1]) for match in _LATENCY.finditer(log)),
        cpu_isa=cpu[1] if cpu else "neon",
    )


def _checks(job: RunnerJob, folder: Path, status: int, log: str) -> tuple[Check, ...]:
    """The folder was empty of results, so files in it are of this run."""
    errors = [line for line in log.splitlines() if line.startswith(("E ", "F "))]
    sizes = [
        _output(folder, n).stat().st_size if _output(folder, n).is_file() else None
        for n in range(len(job.output_sizes))
    ]
    wanted = list(job.output_sizes)
    files = [ETDUMP] * job.profile + [MAPS] * job.counted
    absent = [name for name in files if not (folder / name).is_file()]
    return (
        Check("exit status", status == 0, errors[0] if errors else ending(status)),
        printed(log, "end marker", "Program complete, exiting."),
        printed(log, "run id", f"run {job.run_id} ended with exit status 0"),
        Check("output files", sizes == wanted, f"{sizes} bytes, {wanted} expected"),
        Check("profile files", not absent, f"not written: {', '.join(absent)}" if absent else "written"),
    )


def _output(folder: Path, number: int) -> Path:
    return folder / f"{OUTPUT}-{number}.bin"


class Emulated(Machine):
    """qemu-aarch64; `cpu` "max" has every feature that it knows, SME2 included."""

    name = "aarch64-emulated"

    def __init__(self, qemu: Path, version: str, runner: Sequence[str], cpu: str = "max") -> None:
        self._qemu, self._version, self._runner, self._cpu = qemu, version, tuple(runner), cpu

    def describe(self) -> dict[str, str]:
        return {"emulator": f"qemu-aarch64 {self._version}", "cpu": f"-cpu {self._cpu}"}

    def execute(
        self, folder: Path, arguments: Sequence[str], seconds: float, trace_to: Path | None
    ) -> tuple[int | None, str]:
        log = [*QEMU_OPTIONS, "-D", str(trace_to)] if trace_to is not None else []
        command = [str(self._qemu), "-cpu", self._cpu, *log, *self._runner, *arguments]
        return run_briefly(["env", "-C", str(folder), *command], seconds, whole=True)


class Native(Machine):
    """This machine itself."""

    name = "aarch64-native"

    def __init__(self, runner: Sequence[str], pinned: int = 0) -> None:
        """`pinned` is how many of the fastest cores to keep to; 0 leaves the choice to the system."""
        self._runner = tuple(runner)
        self._pinning = cores.fastest(_local(cores.QUERY), pinned, self.name) if pinned else None

    def describe(self) -> dict[str, str]:
        return {"device": platform.node() or "this machine", "power": cores.power_text(self._pinning)}

    def execute(
        self, folder: Path, arguments: Sequence[str], seconds: float, trace_to: Path | None
    ) -> tuple[int | None, str]:
        assert trace_to is None, "only an emulator logs what it executes"
        command = [*(self._pinning.prefix if self._pinning else ()), *self._runner, *arguments]
        return run_briefly(["env", "-C", str(folder), *command], seconds, whole=True)


def _local(command: str) -> str:
    return run_briefly(["sh", "-c", command], _BRIEFLY, whole=True)[1]

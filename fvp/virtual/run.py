# SPDX-License-Identifier: Apache-2.0
"""The virtual Corstone as a platform: one whole run, from the job to its proven outputs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fvp.platform import Capabilities, Check, Deadline, Job, Outcome, Platform, nbytes
from fvp.virtual import tools
from fvp.virtual.boards import BOARDS, Board
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.firmware import Firmware, Workload, first_error
from fvp.virtual.gdb import GdbClient, StubError
from fvp.virtual.machine import Ending, Machine
from fvp.virtual.mlek import MlekFirmware
from fvp.virtual.process import GuestGone, QemuProcess
from fvp.virtual.runner import RunnerFirmware
from npu.config import CONFIGS, npu_config
from report import pte
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
        """None when qemu-arm and the firmware for the target's board are here."""
        return cls.available() or _firmware(runner).missing(npu_config(target).family)

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


def _firmware(runner: str | None) -> type[Firmware]:
    """The kind of firmware of that name; None takes the default.

    Raises:
        UsageError: there is none of that name.
    """
    if runner is None:
        return next(iter(FIRMWARES.values()))
    if runner not in FIRMWARES:
        raise UsageError(
            f"unknown runner {runner!r}", where="--runner", hint=f"known: {', '.join(FIRMWARES)}"
        )
    return FIRMWARES[runner]


@dataclass(frozen=True)
class _Prepared:
    """A job with everything read, checked and built before the simulator starts."""

    board: Board
    firmware: Firmware
    output_orders: tuple[tuple[int, ...], ...]


def _prepare(job: Job, folder: Path) -> _Prepared:
    family, kind = npu_config(job.target).family, _firmware(job.runner)
    if family not in kind.boards:
        raise UsageError(str(kind.missing(family)), where=NAME)
    board = BOARDS[kind.boards[family]]
    data = _read(job)
    method = pte.parse(data, str(job.pte)).method()
    inputs = method.tensors(method.inputs)
    outputs = method.tensors(method.outputs)
    sizes = [nbytes(spec) for spec in job.output_specs]
    _require_same("input", [(a.shape, a.nbytes) for a in job.inputs], inputs)
    _require_same("output", [(s, n) for (s, _), n in zip(job.output_specs, sizes, strict=True)], outputs)
    workload = Workload(
        program=pte.program_bytes(data, str(job.pte)),
        inputs=tuple(_stored(a, t.dim_order) for a, t in zip(job.inputs, inputs, strict=True)),
        output_sizes=tuple(sizes),
        delegate_calls=sum(isinstance(item, pte.DelegateCall) for item in method.instructions),
        memory_mode=job.memory_mode,
        folder=folder,
        run_id=job.run_id,
    )
    orders = tuple(tensor.dim_order for tensor in outputs)
    return _Prepared(board, kind.create(board, workload), orders)


def _read(job: Job) -> bytes:
    try:
        return job.pte.read_bytes()
    except OSError as error:
        raise UsageError("cannot read the program", where=str(job.pte), why=str(error.strerror)) from error


def _require_same(
    side: str, given: Sequence[tuple[tuple[int, ...], int]], wanted: Sequence[pte.TensorMeta]
) -> None:
    """Shapes and sizes of the job's tensors must be the program's."""
    if len(given) != len(wanted):
        raise UsageError(f"{len(given)} {side}(s) given, the program has {len(wanted)}", where=NAME)
    for number, ((shape, size), tensor) in enumerate(zip(given, wanted, strict=True)):
        if tuple(shape) != tensor.shape or size != tensor.nbytes:
            raise UsageError(
                f"{side} {number} is {list(shape)} in {size} bytes",
                where=NAME,
                why=f"the program has {tensor.dtype} {list(tensor.shape)} in {tensor.nbytes} bytes",
            )


def _stored(array: np.ndarray, dim_order: Sequence[int]) -> bytes:
    """An array's bytes in the program's dimension order."""
    return array.transpose(dim_order).tobytes() if array.ndim else array.tobytes()


def _restored(data: bytes, shape: Sequence[int], dtype: np.dtype, dim_order: Sequence[int]) -> np.ndarray:
    """The array whose bytes in dimension order `dim_order` are `data`."""
    array = np.frombuffer(data, dtype).reshape([shape[axis] for axis in dim_order])
    return np.ascontiguousarray(array.transpose(np.argsort(dim_order))) if array.ndim else array


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
            except PlatformTimeout as error:
                why = error.why + self._last_line()
                raise PlatformTimeout(error.what, where=error.where, why=why, hint=error.hint) from None
            except (StubError, GuestGone) as error:
                why = f"{error}; {qemu.last_words()}{self._last_line()}"
                raise RunFailed("the simulator went away", where=NAME, why=why) from error
        wall = time.perf_counter() - started
        log, jobs = self._console.text, machine.npu.jobs
        checks = (*self._firmware.evidence(log, jobs, ending), changed)
        _require(checks)
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
        note = _counters_note(jobs)
        return Outcome(
            outputs=tuple(
                _restored(part, shape, np.dtype(dtype), order) for part, (shape, dtype), order in specs
            ),
            log=log,
            counters={n: None if note else value for n, value in self._firmware.counters(log).items()},
            counters_note=note,
            npu_seconds=sum(job.seconds for job in jobs),
            wall_seconds=wall,
            checks=checks,
            banner=self._firmware.banner(log),
            npu_jobs=len(jobs),
            stops=machine.stops,
            provenance=self._provenance(),
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


def _counters_note(jobs: Sequence[NpuJob]) -> str:
    """Why the counters that the firmware read mean nothing; empty if they do."""
    if any(job.uncounted for job in jobs):
        return "the NPU model does not count cycles or bus traffic"
    return "" if jobs else "the NPU ran no job"


def _require(checks: Sequence[Check]) -> None:
    """Raise RunFailed for the first check that did not hold."""
    for check in checks:
        if not check.passed:
            raise RunFailed(
                "the run has no proof of success", where=NAME, why=f"{check.name}: {check.detail}"
            )

# SPDX-License-Identifier: Apache-2.0
"""The virtual Corstone as a platform: one whole run, from the job to its proven outputs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fvp.platform import Capabilities, Check, Deadline, Job, Outcome, Platform
from fvp.virtual import mlek, tools
from fvp.virtual.boards import BOARDS, Board
from fvp.virtual.devices.console import Console
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.elf import Image, prepare
from fvp.virtual.gdb import GdbClient, StubError
from fvp.virtual.machine import Machine
from fvp.virtual.mlek import MlekFirmware
from fvp.virtual.process import GuestGone, QemuProcess
from npu.config import CONFIGS, Family, npu_config
from report import pte
from report.errors import ArmdeployError, PlatformTimeout, RunFailed, UsageError

NAME = "virtual"

FIRMWARE_BOARDS: Mapping[Family, str] = {Family.U55: "corstone-300", Family.U85: "corstone-320"}
"""Boards for which Arm ships a prebuilt ExecuTorch runner, by the NPU it drives."""


class VirtualCorstone(Platform):
    """Arm's prebuilt firmware on qemu-arm, with the board's devices and the NPU modelled here."""

    name = NAME
    capabilities = Capabilities(
        targets=frozenset(config.name for config in CONFIGS.values() if config.family in FIRMWARE_BOARDS)
    )

    @classmethod
    def available(cls) -> str | None:
        """None when qemu-arm and at least one firmware image are here."""
        missing = _missing_qemu()
        if missing is None and not any(tools.find_image(board) for board in FIRMWARE_BOARDS.values()):
            missing = "Arm's firmware is not installed; run ./setup.sh"
        return missing

    @classmethod
    def available_for(cls, target: str) -> str | None:
        """None when qemu-arm and the firmware for the target's board are here."""
        board = FIRMWARE_BOARDS.get(npu_config(target).family)
        if board is None:
            return f"Arm ships no prebuilt ExecuTorch firmware for {target}"
        if tools.find_image(board) is None:
            return f"Arm's firmware for {board} is not installed; run ./setup.sh"
        return _missing_qemu()

    def run(self, job: Job) -> Outcome:
        """Run one inference of the job's program in the firmware.

        Raises:
            UsageError: the program is damaged, or inputs or outputs are not the program's.
            CompileError: program, inputs or outputs do not fit the board.
            EnvironmentError_: QEMU or the firmware is missing or too old.
            RunFailed: no proof of success; `log` holds the console text.
            PlatformTimeout: the time limit passed; `log` as well.
        """
        prepared = _prepare(job)
        console = Console.for_run(job.verbose)
        try:
            return _Run(job, prepared, console).outcome()
        except ArmdeployError as error:
            error.log = console.text
            said = mlek.first_error(console.text)
            error.why += f"; the firmware said: {said}" if said else ""
            raise


def _missing_qemu() -> str | None:
    return (
        None
        if tools.find_qemu()
        else f"qemu-arm is not installed; run ./setup.sh or set {tools.QEMU_VARIABLE}"
    )


@dataclass(frozen=True)
class _Prepared:
    """A job with everything read and checked before the simulator starts."""

    board: Board
    image: Image
    program: bytes
    inputs: tuple[bytes, ...]
    output_orders: tuple[tuple[int, ...], ...]
    delegate_calls: int


def _prepare(job: Job) -> _Prepared:
    family = npu_config(job.target).family
    if family not in FIRMWARE_BOARDS:
        raise UsageError(f"Arm ships no prebuilt ExecuTorch firmware for {job.target}", where=NAME)
    board = BOARDS[FIRMWARE_BOARDS[family]]
    data = _read(job)
    method = pte.parse(data, str(job.pte)).method()
    inputs = method.tensors(method.inputs)
    outputs = method.tensors(method.outputs)
    _require_same("input", [(a.shape, a.nbytes) for a in job.inputs], inputs)
    _require_same(
        "output", [(s, np.dtype(d).itemsize * int(np.prod(s))) for s, d in job.output_specs], outputs
    )
    return _Prepared(
        board=board,
        image=prepare(tools.require_image(board.name), board),
        program=pte.program_bytes(data, str(job.pte)),
        inputs=tuple(_stored(a, t.dim_order) for a, t in zip(job.inputs, inputs, strict=True)),
        output_orders=tuple(tensor.dim_order for tensor in outputs),
        delegate_calls=sum(isinstance(item, pte.DelegateCall) for item in method.instructions),
    )


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
        self._firmware = MlekFirmware(prepared.board, prepared.image)
        self._qemu = tools.require_qemu()

    def outcome(self) -> Outcome:
        """Start the simulator, run, judge.

        Raises:
            RunFailed, PlatformTimeout: see `VirtualCorstone.run`.
        """
        started = time.perf_counter()
        deadline = Deadline(self._job.timeout, NAME)
        with QemuProcess(
            self._qemu, self._prepared.board.qemu_cpu, self._prepared.image.path, deadline
        ) as qemu:
            try:
                machine, data, changed = self._execute(qemu, deadline)
            except PlatformTimeout as error:
                why = error.why + self._last_line()
                raise PlatformTimeout(error.what, where=error.where, why=why, hint=error.hint) from None
            except (StubError, GuestGone) as error:
                why = f"{error}; {qemu.last_words()}{self._last_line()}"
                raise RunFailed("the simulator went away", where=NAME, why=why) from error
        wall = time.perf_counter() - started
        checks = (*self._evidence(machine), changed)
        _require(checks)
        return self._result(data, machine, checks, wall)

    def _execute(self, qemu: QemuProcess, deadline: Deadline) -> tuple[Machine, list[bytes], Check]:
        """The machine after its run, the output bytes, and whether they were written."""
        prepared, specs, memory = self._prepared, self._job.output_specs, qemu.memory
        client = GdbClient(qemu.connection, deadline)
        client.handshake()  # QEMU answers when the guest's memory is mapped
        self._firmware.load(memory, prepared.program, prepared.inputs, specs)
        npu = npu_config(self._job.target)
        machine = Machine(
            prepared.board, npu, prepared.image, memory, self._console, deadline, faults_end_the_run=True
        )
        machine.run(client, self._firmware.hooks(self._console, memory))
        return machine, *self._firmware.outputs(memory, specs)

    def _last_line(self) -> str:
        lines = self._console.text.split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"; last console line: {last}" if last else "; the console is empty"

    def _evidence(self, machine: Machine) -> list[Check]:
        prepared = self._prepared
        return self._firmware.evidence(
            self._console.text,
            prepared.inputs,
            self._job.output_specs,
            machine.npu.jobs,
            prepared.delegate_calls,
        )

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
            counters={name: None if note else value for name, value in mlek.counters(log).items()},
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
        board, image = self._prepared.board, self._prepared.image
        version = ".".join(map(str, tools.qemu_version(self._qemu)))
        return {
            "board": board.name,
            "cpu": board.cpu,
            "emulator": f"qemu-arm {version}, -cpu {board.qemu_cpu}",
            "firmware": image.source.name,
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

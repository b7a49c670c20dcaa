# SPDX-License-Identifier: Apache-2.0
"""An application on the virtual Corstone with the settings of an FVP's command line."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

from fvp.frontend import wording
from fvp.frontend.models import Model
from fvp.frontend.options import Request
from fvp.frontend.parameters import Parameters
from fvp.platform import Deadline
from fvp.virtual import mlek, tools
from fvp.virtual.boards import BOARDS, Board
from fvp.virtual.devices.console import END_OF_TRANSMISSION, Console
from fvp.virtual.elf import Image, prepare
from fvp.virtual.gdb import GdbClient, StubError
from fvp.virtual.machine import Hook, Machine, Reason
from fvp.virtual.process import GuestGone, GuestMemory, QemuProcess
from fvp.virtual.semihosting import Settings
from npu.config import NpuConfig, npu_config
from npu.errors import UnknownConfig
from report.errors import PlatformTimeout, RunFailed, UsageError

_NO_LIMIT = 1e8
"""Seconds: three years."""

_UART_DRIVER = "UartPutc"
"""Symbol of the ML evaluation kit's console driver, to which its ``_write`` sends everything."""


@dataclasses.dataclass(frozen=True)
class End:
    """How a simulation ended.

    Attributes:
        code: the process's exit code.
        limit: the line that names the limit that ended it, "" for none.
        virtual_seconds: time on the virtual clock.
    """

    code: int
    limit: str
    virtual_seconds: float


def simulate(
    model: Model, request: Request, values: Parameters, uart: TextIO, say: Callable[[str], None]
) -> End:
    """Run the application to its end.

    Args:
        uart: where the text of UART0 goes; semihosting's console is standard output.
        say: takes one-line remarks for the user.

    Raises:
        UsageError, EnvironmentError_: what the command line names cannot be used, or a tool is missing.
        RunFailed: the application faults with nobody to handle it, or does what is not simulated.
    """
    board, npu = BOARDS[model.board], _npu(model, values)
    image = _image(request, values, board)
    deadline = Deadline(request.seconds or _NO_LIMIT, model.program)
    eot = END_OF_TRANSMISSION if values.flag("shutdown_on_eot") else None
    console = Console(uart, eot, values.text("shutdown_tag"))
    with QemuProcess(tools.require_qemu(), board.qemu_cpu, image.path, deadline) as qemu:
        client = GdbClient(qemu.connection, deadline)
        try:
            client.handshake()
            _load(request, board, qemu.memory)
            machine = Machine(
                board,
                npu,
                image,
                qemu.memory,
                console,
                deadline,
                semihosting=_semihosting(values),
                report=say,
            )
            hooks = _hooks(board, image, console, qemu.memory)
            return _run(machine, client, hooks, request, board, say)
        except (StubError, GuestGone) as error:
            raise RunFailed("the simulator went away", why=f"{error}; {qemu.last_words()}") from error


def _run(
    machine: Machine,
    client: GdbClient,
    hooks: Mapping[int, Hook],
    request: Request,
    board: Board,
    say: Callable[[str], None],
) -> End:
    simulated = request.simulated_seconds
    limits = [request.cycles, None if simulated is None else int(simulated * board.clock_hz)]
    try:
        cycle_limit = min((n for n in limits if n is not None), default=None)
        ending = machine.run(client, hooks, cycle_limit=cycle_limit)
        code, limit = ending.status, ""
        if ending.detail:
            say(f"the application stopped itself: {ending.detail}")
        if ending.reason is Reason.CYCLE_LIMIT:
            by_cycles = request.cycles is not None and machine.clock.cycles >= request.cycles
            limit = wording.CYCLE_LIMIT if by_cycles else wording.SIMULATED_TIME_LIMIT
    except PlatformTimeout as error:
        code, limit = error.exit_code, wording.TIME_LIMIT
    finally:
        for job in machine.npu.jobs:
            if job.fault:
                say(f"NPU {type(job.fault).__name__}: {job.fault}")
        for fault in machine.faults:
            say(f"CPU {fault}")
    return End(code, limit, machine.clock.cycles / board.clock_hz)


def _npu(model: Model, values: Parameters) -> NpuConfig:
    name = f"{model.family}-{values.number('num_macs')}"
    try:
        return npu_config(name)
    except UnknownConfig as error:
        raise UsageError(f"there is no {name}", where=f"{model.npu}.num_macs", why=str(error)) from error


def _image(request: Request, values: Parameters, board: Board) -> Image:
    application = request.application or Path()
    if not application.is_file():
        raise UsageError(f"cannot read the application {application}", why="no such file")
    image = prepare(application, board)
    vectors = values.number("INITSVTOR")
    return image if vectors < 0 else dataclasses.replace(image, vectors=vectors)


def _semihosting(values: Parameters) -> Settings | None:
    if not values.flag("semihosting-enable"):
        return None
    folder = Path(values.text("semihosting-cwd") or ".")
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", where="semihosting-cwd")
    names = ("heap_base", "heap_limit", "stack_base", "stack_limit")
    heap_base, heap_limit, stack_base, stack_limit = (values.number(f"semihosting-{name}") for name in names)
    heap = heap_base, heap_limit, stack_base, stack_limit
    return Settings(folder, values.text("semihosting-cmd_line"), heap, _print, sys.stdin.buffer)


def _print(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _load(request: Request, board: Board, memory: GuestMemory) -> None:
    """Put raw data files into the guest's memory."""
    for path, address in request.data:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {path}", where="--data", why=str(error.strerror)) from error
        try:
            target = board.guest_address(address)
        except LookupError as error:
            raise UsageError(f"{path}@{address:#010x}", where="--data", why=str(error)) from error
        if not board.has_memory(target, len(data)):
            raise UsageError(f"{path}: {len(data)} bytes do not fit at {address:#010x}", where="--data")
        memory.write(target, data)


def _hooks(board: Board, image: Image, console: Console, memory: GuestMemory) -> Mapping[int, Hook]:
    """Shortcuts for the one firmware whose slow paths are known."""
    known = _UART_DRIVER in image.symbols and "_write" in image.symbols
    return mlek.shortcuts(board, image, console, memory) if known else {}

# SPDX-License-Identifier: Apache-2.0
"""Runs of the bare-metal runner on the virtual Corstone, for tests."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fvp.host.executor import execute_method
from fvp.platform import Deadline
from fvp.virtual import tools
from fvp.virtual.boards import BOARDS
from fvp.virtual.devices.console import Console
from fvp.virtual.elf import prepare
from fvp.virtual.gdb import GdbClient
from fvp.virtual.machine import Machine, Reason
from fvp.virtual.process import QemuProcess
from fvp.virtual.runner_build import RunnerBuild, build, missing_tools
from fvp.virtual.semihosting import Settings
from npu.config import npu_config
from report import pte

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "data" / "runner"
SECONDS = 120

needs_runner = pytest.mark.skipif(
    tools.find_qemu() is None or missing_tools() is not None,
    reason=f"the runner cannot be built or run: {missing_tools() or 'no qemu-arm'} (setup.sh)",
)


@dataclass(frozen=True)
class Run:
    """One run: exit status (None: it ended through the console), its log, files it left, machine."""

    status: int | None
    log: str
    files: Mapping[str, bytes]
    jobs: int
    stops: int
    memory_used: Mapping[str, int]

    def outputs(self) -> list[bytes]:
        """out-0.bin, out-1.bin …"""
        names = sorted(name for name in self.files if re.fullmatch(r"out-\d+\.bin", name))
        return [self.files[name] for name in names]


@functools.cache
def elf(board: str, memory_mode: str, *programs: str) -> Path:
    """The runner with the operators of `programs` (names in tests/data/runner), built once."""
    paths = tuple(PROGRAMS / f"{name}.pte" for name in programs)
    return build(RunnerBuild(board, memory_mode, programs=paths))


def npu_only(board: str, memory_mode: str) -> Path:
    """The runner without a single kernel: for programs whose work is all on the NPU."""
    return elf(board, memory_mode, "two_u85_256")


def run(
    image: Path,
    board: str,
    npu: str,
    folder: Path,
    *,
    program: bytes | None = None,
    inputs: Sequence[bytes] = (),
    arguments: str = "",
) -> Run:
    """Run a firmware with a program and input files in `folder`.

    Args:
        arguments: of the command line, behind those for program, inputs and outputs.
    """
    line = "executor_runner -o out"
    if program is not None:
        (folder / "program.pte").write_bytes(program)
        line += " -m program.pte"
    for number, data in enumerate(inputs):
        (folder / f"i{number}.bin").write_bytes(data)
        line += f" -i i{number}.bin"
    return execute(image, board, npu, folder, f"{line} {arguments}".strip())


def execute(image: Path, board: str, npu: str, folder: Path, command_line: str) -> Run:
    """Run a firmware on a board's model."""
    chosen, deadline, console = BOARDS[board], Deadline(SECONDS, "test"), Console.for_run(False)
    ready = prepare(image, chosen)
    with QemuProcess(tools.require_qemu(), chosen.qemu_cpu, ready.path, deadline) as qemu:
        client = GdbClient(qemu.connection, deadline)
        client.handshake()
        settings = Settings(folder, command_line)
        machine = Machine(
            chosen, npu_config(npu), ready, qemu.memory, console, deadline, semihosting=settings
        )
        ending = machine.run(client, {})
        stack = _stack_used(ready.symbols, qemu)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    status = ending.status if ending.reason is Reason.EXIT else None
    return Run(status, console.text, files, len(machine.npu.jobs), machine.stops, {"stack": stack})


def _stack_used(symbols: Mapping[str, int], qemu: QemuProcess) -> int:
    """Bytes of stack that were ever written; memory below the stack and its limit starts as zeros."""
    bottom, top = symbols["__bss_end"], symbols["__stack_top"]
    written = np.flatnonzero(np.frombuffer(qemu.memory.read(bottom, top - bottom), np.uint8))
    return int(top - bottom - written[0]) if written.size else 0


@dataclass(frozen=True)
class Example:
    """A program with inputs and what the host reference makes of them."""

    program: bytes
    inputs: tuple[bytes, ...]
    expected: tuple[bytes, ...]


@functools.cache
def example(name: str, npu: str, seed: int = 0) -> Example:
    """A program of tests/data/runner with random inputs; the oracle is the host reference."""
    path = PROGRAMS / f"{name}.pte"
    program = pte.load(path)
    method = program.method()
    random = np.random.default_rng(seed)
    inputs = [_random(random, tensor) for tensor in method.tensors(method.inputs)]
    outputs = execute_method(method, program.named_data, inputs, npu_config(npu)).outputs
    return Example(
        path.read_bytes(),
        tuple(array.tobytes() for array in inputs),
        tuple(np.ascontiguousarray(array).tobytes() for array in outputs),
    )


def outputs_for_ones(name: str, npu: str) -> list[list[int]]:
    """What the host reference makes of inputs that are 1 everywhere, flat."""
    program = pte.load(PROGRAMS / f"{name}.pte")
    method = program.method()
    inputs = [np.ones(tensor.shape, tensor.dtype) for tensor in method.tensors(method.inputs)]
    outputs = execute_method(method, program.named_data, inputs, npu_config(npu)).outputs
    return [np.ascontiguousarray(array).reshape(-1).tolist() for array in outputs]


def _random(random: np.random.Generator, tensor: pte.TensorMeta) -> np.ndarray:
    if tensor.dtype == "float32":
        return random.standard_normal(tensor.shape).astype(np.float32)
    return random.integers(-128, 128, tensor.shape).astype(tensor.dtype)


def relink(image: Path, folder: Path, board: str, *options: str) -> Path:
    """The objects of a built runner, linked anew with other options of cmake/tools/board.py.

    Returns:
        The new ELF, in `folder`.
    """
    objects = [str(path) for path in sorted(image.parent.glob("CMakeFiles/**/*.obj"))]
    tool = ROOT / "cmake" / "tools" / "board.py"
    subprocess.run(
        ["python3", tool, "--board", ROOT / f"cmake/boards/{board}.json", "--output", folder, *options],
        check=True,
    )
    flags = ["-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-nostartfiles", "-nodefaultlibs"]
    libraries = ["-Wl,--gc-sections", "-Wl,--start-group", "-lc_nano", "-lm", "-lgcc", "-Wl,--end-group"]
    output = folder / "relinked"
    command = ["arm-none-eabi-g++", *flags, f"-T{folder}/linker.ld", *objects, *libraries, "-o", output]
    subprocess.run(command, check=True, capture_output=True)
    return output

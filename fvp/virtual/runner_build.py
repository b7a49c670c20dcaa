# SPDX-License-Identifier: Apache-2.0
"""Builds arm_executor_runner on demand with CMake and Ninja, into the cache folder, incrementally.

Every set of options has a folder of its own; a build without a change takes a tenth of a second.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from fvp.virtual.boards import BOARDS, KIB, MIB
from fvp.virtual.tools import cache_dir
from npu.config import Family
from npu.container import parse_velabin
from report import pte
from report.errors import CompileError, EnvironmentError_, UsageError

ROOT = Path(__file__).resolve().parents[2]
NAME = "arm_executor_runner"

PACKAGES: Mapping[str, str] = MappingProxyType(
    {
        "cmake": "cmake",
        "ninja": "ninja-build",
        "flatc": "flatbuffers-compiler libflatbuffers-dev",
        "arm-none-eabi-g++": "gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib",
    }
)
"""Programs a build needs, and the Debian packages that hold them."""

_TOOLCHAINS = {"corstone-300": "cortex-m55", "corstone-310": "cortex-m85", "corstone-320": "cortex-m85"}

BOARD_OF: Mapping[Family, str] = MappingProxyType(
    {Family.U55: "corstone-300", Family.U65: "corstone-300", Family.U85: "corstone-320"}
)
"""The board a family of NPUs runs on unless another is asked for."""

MEMORY_MODES: Mapping[Family, str] = MappingProxyType(
    {Family.U55: "Shared_Sram", Family.U65: "Dedicated_Sram_384KB", Family.U85: "Dedicated_Sram_384KB"}
)
"""Memory modes of the runner where nobody names one, as ExecuTorch builds its own."""


@dataclass(frozen=True)
class RunnerBuild:
    """What to build.

    Attributes:
        board: a file of cmake/boards, without its suffix.
        memory_mode: Vela's name; decides where the NPU's scratch is.
        programs: .pte or .bpte files whose operators are linked in; none: every kernel there is.
        embedded: program to put into the ELF.
        semihosting: files, console and command line through semihosting, not a UART.
        options: further CMake cache entries (cmake/modules/Runner.cmake lists them).
    """

    board: str
    memory_mode: str
    programs: tuple[Path, ...] = ()
    embedded: Path | None = None
    semihosting: bool = True
    options: Mapping[str, str] = field(default_factory=dict)

    def definitions(self) -> dict[str, str]:
        """CMake cache entries."""
        return {
            "BOARD": self.board,
            "MEMORY_MODE": self.memory_mode,
            "SEMIHOSTING": "ON" if self.semihosting else "OFF",
            "EXECUTORCH_SELECT_OPS_MODEL": ";".join(str(path.resolve()) for path in self.programs),
            "ET_PTE_FILE_PATH": str(self.embedded.resolve()) if self.embedded else "",
            **self.options,
        }

    def folder(self) -> Path:
        """Where it is built; another set of options has another folder."""
        key = repr((str(ROOT), sorted(self.definitions().items())))
        return cache_dir() / "runner" / f"{self.board}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


_TEMP_POOL = "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE"
_BIG_POOL = 64 * MIB
_KERNEL_BYTES = 64 * KIB
"""What kernels may need of the temp pool; they and the NPU use it in turn."""


def for_family(family: Family, memory_mode: str | None = None, scratch: int = 0) -> RunnerBuild:
    """The runner with every kernel for the usual board of a family.

    Args:
        scratch: bytes of NPU scratch that must fit; more than the SRAM has goes to external memory, so that a
            program which is too big for the board's SRAM can still be run and looked at.
    """
    board, mode = BOARD_OF[family], memory_mode or MEMORY_MODES[family]
    sram = next(memory.size for memory in BOARDS[board].memories if memory.name == "sram")
    too_big = not mode.startswith("Dedicated") and scratch + _KERNEL_BYTES > sram
    return RunnerBuild(board, mode, options={_TEMP_POOL: hex(_BIG_POOL)} if too_big else {})


def scratch_bytes(program: bytes) -> int:
    """Bytes of scratch of the program's biggest Ethos-U delegate; 0 without one.

    Raises:
        report.pte.PteError: no readable program.
        npu.errors.ContainerError: a delegate is damaged.
    """
    parsed = pte.parse(program, NAME)
    blobs = [d.blob for m in parsed.methods for d in m.delegates if d.backend == "EthosUBackend"]
    return max((parse_velabin(blob, parsed.named_data).scratch_size for blob in blobs), default=0)


def missing_tools() -> str | None:
    """What is not installed and how to get it, in one line; None when everything is there."""
    missing = [program for program in PACKAGES if shutil.which(program) is None]
    if not missing:
        return None
    packages = " ".join(PACKAGES[program] for program in missing)
    return f"{', '.join(missing)} not installed; on Debian: apt-get install {packages}"


def build(request: RunnerBuild) -> Path:
    """The ELF of a runner, built or brought up to date.

    Raises:
        UsageError: unknown board.
        EnvironmentError_: a tool is missing, or the build fails.
        CompileError: an operator of `programs` has no kernel, or something does not fit the board.
    """
    if request.board not in _TOOLCHAINS:
        raise UsageError(f"unknown board {request.board!r}", why=f"known: {', '.join(_TOOLCHAINS)}")
    if why := missing_tools():
        raise EnvironmentError_("cannot build the runner", where=NAME, why=why, hint="run ./setup.sh")
    folder = request.folder()
    with locked(folder):
        if not (folder / "build.ninja").exists():
            run_step(_configure(request, folder), folder)
        run_step(["ninja", "-C", str(folder)], folder)
    return folder / NAME


def _configure(request: RunnerBuild, folder: Path) -> list[str]:
    toolchain = ROOT / "cmake" / "toolchains" / f"{_TOOLCHAINS[request.board]}.cmake"
    definitions = {"CMAKE_TOOLCHAIN_FILE": str(toolchain), "ARMDEPLOY_PYTHON": sys.executable}
    definitions |= request.definitions()
    entries = [f"-D{name}={value}" for name, value in definitions.items()]
    return ["cmake", "-S", str(ROOT / "cmake"), "-B", str(folder), "-G", "Ninja", *entries]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One build at a time in a folder, whoever asks."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        why = str(error.strerror)
        raise EnvironmentError_(
            f"cannot write {folder}", where=NAME, why=why, hint="set ARMDEPLOY_CACHE"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_step(command: Sequence[str], folder: Path) -> None:
    """Run one step, its text kept in the folder.

    Raises:
        EnvironmentError_, CompileError: it failed.
    """
    log = folder / f"{Path(command[0]).name}.log"
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    log.write_bytes(result.stdout)
    if result.returncode == 0:
        return
    if command[0] == "cmake":
        (folder / "build.ninja").unlink(missing_ok=True)
    text = _unwrapped(result.stdout.decode("utf-8", "replace"))
    if line := _find(text, "unknown memory mode"):
        raise UsageError("the runner cannot be built like that", where=NAME, why=line)
    if line := _find(text, "no kernel for ", "does not fit", "are in no memory"):
        raise CompileError("the program does not go into the runner", where=NAME, why=line)
    why = _find(text, "CMake Error", "error:", "undefined reference")
    why = why or f"{command[0]} ended with {result.returncode}"
    raise EnvironmentError_("the runner does not build", where=NAME, why=why, hint=f"see {log}")


def _unwrapped(text: str) -> str:
    """CMake's errors in one line each; it breaks and indents them."""
    return re.sub(r"(?<=\S)\n+  (?=\S)", " ", text)


def _find(text: str, *marks: str) -> str | None:
    """The first line that holds one of the marks; the first mark that is anywhere counts."""
    lines = text.splitlines()
    return next((line.strip() for mark in marks for line in lines if mark in line), None)

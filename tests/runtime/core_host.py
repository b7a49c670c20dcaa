# SPDX-License-Identifier: Apache-2.0
"""The host build of the runtime for tests (sanitised, with test delegates), and ExecuTorch's runtime."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import core_programs
import torch
from core_programs import Case

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
BUILD = ROOT / ".pytest_cache" / "core_host"
ORACLE = HERE / "core_oracle.py"

OK, CANNOT_LOAD, FAILED = 0, 4, 5
"""Exit codes of runner_host."""


@cache
def case(name: str) -> Case:
    """A program of core_programs by name, made once."""
    return (core_programs.PROGRAMS | core_programs.HAND_MADE)[name]()


@lru_cache(maxsize=1)
def build() -> Path:
    """Folder with runner_host and fuzz_pte, the kernels of all test programs linked in."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        programs = [_keep(name) for name in core_programs.PROGRAMS | core_programs.HAND_MADE]
        options = ["-DSANITIZE=ON", f"-DARMDEPLOY_PTE={';'.join(map(str, programs))}"]
        options += [f"-DARMDEPLOY_BACKENDS={HERE / 'core_backends.cpp'}"]
        _call("cmake", "-S", str(ROOT / "runtime/host"), "-B", str(BUILD), "-G", "Ninja", *options)
        _call("ninja", "-C", str(BUILD), "runner_host", "fuzz_pte")
    return BUILD


def _keep(name: str) -> Path:
    path = BUILD / "programs" / f"{name}.pte"
    path.parent.mkdir(exist_ok=True)
    if not path.is_file() or path.read_bytes() != case(name).pte:
        path.write_bytes(case(name).pte)
    return path


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Run:
    """What runner_host did: exit code, both streams, the bytes of every output."""

    status: int
    stdout: str
    stderr: str
    outputs: tuple[bytes, ...]

    @property
    def error(self) -> int:
        """ExecuTorch's error code on stderr; 0 when there is none."""
        found = re.search(r"^E error 0x([0-9a-f]+) ", self.stderr, re.MULTILINE)
        return int(found[1], 16) if found else 0

    def used(self, name: str) -> int:
        """Bytes used of a memory, from the report at the end."""
        found = re.search(rf"^{name}: (\d+) / \d+$", self.stdout, re.MULTILINE)
        assert found, self.stdout
        return int(found[1])


def bytes_of(tensor: torch.Tensor) -> bytes:
    """The tensor's bytes, contiguous."""
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def run(pte: bytes, inputs: Sequence[torch.Tensor] | None = None, *options: str, shaped: bool = True) -> Run:
    """Run a program's bytes; `inputs` None: give no input files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.pte").write_bytes(pte)
        command = [str(build() / "runner_host"), "-m", "model.pte", "-o", "out", *options]
        for k, tensor in enumerate(inputs or ()):
            (folder / f"in{k}.bin").write_bytes(bytes_of(tensor))
            command += ["-i", f"in{k}.bin"]
            command += ["--shape", ",".join(map(str, tensor.shape))] if shaped and tensor.dim() else []
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        paths = sorted(folder.glob("out-*.bin"), key=lambda p: int(p.stem[4:]))
        return Run(done.returncode, done.stdout, done.stderr, tuple(p.read_bytes() for p in paths))


def run_case(name: str, *options: str) -> Run:
    """Run a program of core_programs with its own inputs."""
    chosen = case(name)
    return run(chosen.pte, chosen.inputs, "--method", chosen.method, *options)


def executorch_outputs(chosen: Case, times: int = 1) -> list[tuple[bytes, ...]]:
    """Bytes of the outputs of each of `times` executions on the runtime of the executorch wheel."""
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(chosen.pte)  # has to outlive its method
    method = program.load_method(chosen.method)
    assert method is not None
    return [tuple(bytes_of(o) for o in method.execute(list(chosen.inputs))) for _ in range(times)]


def executorch_errors(programs: Mapping[str, bytes]) -> dict[str, int]:
    """What ExecuTorch's runtime says of each file, a code of core_oracle.py.

    Each file is tried in another process, so that one that brings the runtime down harms nobody.
    """
    with tempfile.TemporaryDirectory() as name:
        for key, pte in programs.items():
            (Path(name) / key).write_bytes(pte)
        command = [sys.executable, str(ORACLE), *(str(Path(name) / key) for key in programs)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    lines = re.findall(r"^ORACLE (\S+) (-?\d+)$", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and len(lines) == len(programs), done.stderr
    return {key: int(code) for key, code in lines}

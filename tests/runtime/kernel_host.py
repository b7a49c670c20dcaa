# SPDX-License-Identifier: Apache-2.0
"""Programs of single operators, and the two runtimes that execute them: ours and ExecuTorch's.

A program is written by hand (schema/program.fbs of the executorch wheel, as JSON, through its flatc), so
any operator, element type, shape and memory order can be called, also those that no exporter emits.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from report.flatschema import PROGRAM, executorch_dir

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".pytest_cache" / "kernels_host"

ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # a run's arenas live until it ends

SCALAR_TYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.bool: 11,
    torch.bfloat16: 15,
}


@dataclass(frozen=True)
class Value:
    """A value of the program under construction, by its index."""

    index: int


@dataclass(frozen=True)
class Out:
    """A tensor that a call writes: its shape, type and order of dimensions in memory."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    dim_order: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape)) * torch.empty((), dtype=self.dtype).element_size()

    @classmethod
    def like(cls, tensor: torch.Tensor) -> Out:
        """One that can hold `tensor` as it is in memory."""
        return cls(tuple(tensor.shape), tensor.dtype, tuple(tensor.dim_order()))


Argument = torch.Tensor | Out | Value | list[Any] | tuple[Any, ...] | str | bool | int | float | None


class ProgramBuilder:
    """Collects calls; their `Out` arguments are the outputs of the method.

    All tensor arguments together are its one input: a block of bytes in planned memory, of which each
    tensor has its place.
    """

    def __init__(self) -> None:
        self.values: list[dict[str, Any]] = []
        self.tensors: list[tuple[int, torch.Tensor]] = []
        self.block = b""
        self.outputs: list[tuple[int, Out]] = []
        self.operators: list[tuple[str, str]] = []
        self.instructions: list[dict[str, Any]] = []
        self.planned = 0

    def call(self, operator: str, *arguments: Argument) -> None:
        """Append a call of ``namespace::name.overload``."""
        name, _, overload = operator.partition(".")
        if (name, overload) not in self.operators:
            self.operators.append((name, overload))
        indices = [self._argument(a) for a in arguments]
        # As the exporter does, the returned values follow: the out tensor again, or a list of several.
        outs = [i for i, a in zip(indices, arguments, strict=True) if isinstance(a, Out) or _is_outs(a)]
        if len(outs) > 1:
            outs = [self._value("TensorList", {"items": outs})]
        indices += outs
        call = {"op_index": self.operators.index((name, overload)), "args": indices}
        self.instructions.append({"instr_args_type": "KernelCall", "instr_args": call})

    def scalar_out(self, size: int) -> Value:
        """A number that a call writes and the method returns, read back as its `size` raw bytes."""
        value = self._value("Int", {"int_val": 0})
        self.outputs.append((value, Out((size,), torch.uint8)))
        return Value(value)

    def build(self) -> bytes:
        """The .pte."""
        values = [*self.values, _tensor(Out((len(self.block),), torch.uint8), 1, 0)]
        plan = {
            "name": "forward",
            "container_meta_type": {"encoded_inp_str": "", "encoded_out_str": ""},
            "values": values,
            "inputs": [len(values) - 1] if self.block else [],
            "outputs": [i for i, _ in self.outputs],
            "chains": [{"inputs": [], "outputs": [], "instructions": self.instructions}],
            "operators": [{"name": n, "overload": o} for n, o in self.operators],
            "delegates": [],
            "non_const_buffer_sizes": [0, len(self.block), self.planned],
        }
        # ExecuTorch insists on a segment of constants; an empty one will do.
        constants = {"segments": [{"offset": 0, "size": 0}], "constant_segment": {"offsets": [0]}}
        program = {"version": 0, "execution_plan": [plan], **constants}
        return _compile(json.dumps(program))

    def _value(self, kind: str, content: dict[str, Any]) -> int:
        self.values.append({"val_type": kind, "val": content})
        return len(self.values) - 1

    def _argument(self, a: Argument) -> int:
        if isinstance(a, Value):
            return a.index
        if isinstance(a, torch.Tensor):
            return self._input(a)
        if isinstance(a, Out):
            return self._output(a)
        if isinstance(a, list | tuple):
            return self._list(list(a))
        return self._scalar(a)

    def _scalar(self, a: str | bool | int | float | None) -> int:
        if a is None:
            return self._value("Null", {})
        if isinstance(a, bool):
            return self._value("Bool", {"bool_val": a})
        if isinstance(a, int):
            return self._value("Int", {"int_val": a})
        if isinstance(a, float):
            return self._value("Double", {"double_val": a})
        return self._value("String", {"string_val": a})

    def _list(self, items: list[Any]) -> int:
        indices = [-1 if i is None else self._argument(i) for i in items]
        if any(i is None for i in items):
            return self._value("OptionalTensorList", {"items": indices})
        tensors = any(isinstance(i, torch.Tensor | Out) for i in items)
        return self._value("TensorList" if tensors else "IntList", {"items": indices})

    def _input(self, tensor: torch.Tensor) -> int:
        for index, known in self.tensors:
            if known is tensor:
                return index
        self.values.append(_tensor(Out.like(tensor), 1, len(self.block)))
        self.tensors.append((len(self.values) - 1, tensor))
        self.block += _padded(memory_of(tensor))
        return len(self.values) - 1

    def _output(self, out: Out) -> int:
        self.values.append(_tensor(out, 2, self.planned))
        self.outputs.append((len(self.values) - 1, out))
        self.planned += len(_padded(bytes(out.nbytes)))
        return len(self.values) - 1


def _is_outs(a: Argument) -> bool:
    return isinstance(a, list) and bool(a) and isinstance(a[0], Out)


def _padded(data: bytes) -> bytes:
    return data + bytes(16 - len(data) % 16)


def _tensor(out: Out, memory: int, offset: int) -> dict[str, Any]:
    content = {
        "scalar_type": SCALAR_TYPES[out.dtype],
        "storage_offset": 0,
        "sizes": list(out.shape),
        "dim_order": list(out.dim_order or range(len(out.shape))),
        "allocation_info": {"memory_id": memory, "memory_offset_low": offset},
    }
    return {"val_type": "Tensor", "val": content}


def _compile(program: str) -> bytes:
    flatc = executorch_dir() / "data" / "bin" / "flatc"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "program.json"
        source.write_text(program)
        command = [str(flatc), "-b", "-o", folder, str(executorch_dir() / PROGRAM), str(source)]
        subprocess.run(command, check=True, capture_output=True)
        return (Path(folder) / "program.pte").read_bytes()


@lru_cache(maxsize=1)
def build() -> Path:
    """Folder of etdump_host and host/runner_host: all kernels, sanitised, rebuilt when sources change."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = str(Path(__file__).parent / "kernel_host_project")
        configure = ["cmake", "-S", source, "-B", str(BUILD), "-G", "Ninja"]
        for command in (configure, ["ninja", "-C", str(BUILD), "runner_host", "etdump_host"]):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    return BUILD


@dataclass(frozen=True)
class Run:
    """What our runner did with a program."""

    status: int
    log: str
    outputs: tuple[torch.Tensor, ...]


def run_ours(builder: ProgramBuilder) -> Run:
    """Execute on our runner; outputs have the declared shapes, and strides of their dim_order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p.pte").write_bytes(builder.build())
        command = [str(build() / "host" / "runner_host"), "-m", "p.pte", "-o", "out"]
        if builder.block:
            (folder / "i.bin").write_bytes(builder.block)
            command += ["-i", "i.bin"]
        done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
        outputs: tuple[torch.Tensor, ...] = ()
        if done.returncode == 0:
            outputs = tuple(_read(folder / f"out-{k}.bin", out) for k, (_, out) in enumerate(builder.outputs))
    return Run(done.returncode, done.stdout + done.stderr, outputs)


def run_executorch(builder: ProgramBuilder) -> tuple[torch.Tensor, ...]:
    """Execute on the runtime of the executorch wheel."""
    import executorch.kernels.quantized  # noqa: F401  (registers quantized_decomposed::*)
    from executorch.runtime import Runtime

    pte = builder.build()  # the runtime does not copy it
    program = Runtime.get().load_program(pte)  # has to outlive its method
    method = program.load_method("forward")
    assert method is not None
    block = [torch.frombuffer(bytearray(builder.block), dtype=torch.uint8)] if builder.block else []
    results = method.execute(block)
    return tuple(r.clone() if isinstance(r, torch.Tensor) else torch.tensor(r) for r in results)


def assert_same(ours: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """Equal shapes and equal bits, except that all NaNs are one."""
    assert ours.shape == expected.shape, what
    assert ours.dtype == expected.dtype, what
    ours, expected = ours.contiguous(), expected.contiguous()
    same = (ours == expected) | (ours.isnan() & expected.isnan())
    if ours.is_floating_point():
        same &= (ours.signbit() == expected.signbit()) | ours.isnan()
    if not bool(same.all()):
        at = int((~same.reshape(-1)).nonzero()[0])
        raise AssertionError(f"{what}[{at}] is {ours.reshape(-1)[at]}, expected {expected.reshape(-1)[at]}")


def check(builder: ProgramBuilder, names: Sequence[str]) -> None:
    """Both runtimes give the same outputs; `names` says what each output is."""
    run = run_ours(builder)
    assert run.status == 0, run.log
    expected = run_executorch(builder)
    for name, ours, theirs in zip(names, run.outputs, expected, strict=True):
        assert_same(ours, theirs, name)


def memory_of(tensor: torch.Tensor) -> bytes:
    """The tensor's bytes as they lie in memory."""
    flat = tensor.permute(tensor.dim_order()).contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def _read(path: Path, out: Out) -> torch.Tensor:
    data = bytearray(path.read_bytes())
    flat = torch.frombuffer(data, dtype=out.dtype) if data else torch.empty(0, dtype=out.dtype)
    order = out.dim_order or tuple(range(len(out.shape)))
    stored = flat.reshape([out.shape[d] for d in order])
    return stored.permute([order.index(d) for d in range(len(order))])

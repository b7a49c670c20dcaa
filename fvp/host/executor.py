# SPDX-License-Identifier: Apache-2.0
"""Reference execution of a .pte on the host: delegates on the NPU model, other operators on torch.

This is what every other platform's output is compared with, so it keeps each delegate call's inputs
and outputs for the comparison with the TOSA reference model.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fvp.host import kernels
from npu.config import NpuConfig
from npu.container import parse_velabin
from npu.errors import NpuError
from npu.machine import execute
from report.errors import RunFailed
from report.pte import (
    Delegate,
    DelegateCall,
    FreeCall,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
    TensorMeta,
    ValueList,
)

_MAX_STEPS = 1_000_000


@dataclass(frozen=True)
class DelegateRun:
    """One delegate call: its tensors as the delegate saw them (memory order) and its time."""

    delegate: int
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]
    seconds: float


@dataclass(frozen=True)
class HostRun:
    """Outputs of a method, shaped as the program says, and every delegate call in order."""

    outputs: tuple[np.ndarray, ...]
    delegate_runs: tuple[DelegateRun, ...]

    @property
    def npu_seconds(self) -> float:
        """Host time spent in the NPU model."""
        return sum(run.seconds for run in self.delegate_runs)


def execute_method(
    method: Method, named_data: Mapping[str, bytes], inputs: Sequence[np.ndarray], config: NpuConfig
) -> HostRun:
    """Run `method` on `inputs` (one array per input, shape and dtype as in the program).

    Raises:
        RunFailed: an operator or a delegate cannot be executed, naming it.
    """
    return _Executor(method, named_data, config).run(inputs)


class _Executor:
    def __init__(self, method: Method, named_data: Mapping[str, bytes], config: NpuConfig) -> None:
        self.method, self.named_data, self.config = method, named_data, config
        self.values: list[Any] = [_initial(value) for value in method.values]
        self.runs: list[DelegateRun] = []

    def run(self, inputs: Sequence[np.ndarray]) -> HostRun:
        for index, array in zip(self.method.inputs, inputs, strict=True):
            self.values[index] = _in_memory_order(torch.from_numpy(np.array(array)), self._meta(index))
        position = steps = 0
        while position < len(self.method.instructions):
            position = self._step(position)
            steps += 1
            if steps > _MAX_STEPS:
                raise RunFailed(f"the program did not end within {_MAX_STEPS} instructions")
        return HostRun(tuple(self._output(i) for i in self.method.outputs), tuple(self.runs))

    def _output(self, index: int) -> np.ndarray:
        value = self.values[index]
        return value.contiguous().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)

    def _step(self, position: int) -> int:
        instruction = self.method.instructions[position]
        if isinstance(instruction, KernelCall):
            self._kernel(instruction)
        elif isinstance(instruction, DelegateCall):
            self._delegate(instruction)
        elif isinstance(instruction, MoveCall):
            self.values[instruction.target] = self.values[instruction.source]
        elif isinstance(instruction, JumpFalseCall):
            if not self.values[instruction.condition]:
                return instruction.destination
        elif isinstance(instruction, FreeCall):
            self.values[instruction.value] = None
        return position + 1

    def _kernel(self, call: KernelCall) -> None:
        kernel = kernels.find(call.operator)
        try:
            results = kernel([self._resolve(self.values[i]) for i in call.args[: kernel.inputs]])
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise RunFailed(f"operator {call.operator} failed on the host", why=str(error)) from error
        targets = call.args[kernel.inputs : kernel.inputs + kernel.outputs]
        for target, result in zip(targets, results, strict=True):
            self._store(target, result)

    def _resolve(self, value: Any) -> Any:
        """A list value as a Python list of what its items mean."""
        if not isinstance(value, ValueList):
            return value
        if value.kind in ("bool", "double"):
            return list(value.items)
        return [None if i == -1 else self.values[i] for i in value.items]

    def _store(self, index: int, result: Any) -> None:
        meta = self.method.values[index]
        if isinstance(meta, ValueList):  # a TensorList output: its items are values of their own
            for item, tensor in zip(meta.items, result, strict=True):
                self._store(item, tensor)
        elif isinstance(meta, TensorMeta) and meta.mutable:
            self.values[index].copy_(result)
        elif isinstance(meta, TensorMeta):
            self.values[index] = result.to(getattr(torch, meta.dtype))
        else:
            self.values[index] = result

    def _delegate(self, call: DelegateCall) -> None:
        delegate = self.method.delegates[call.delegate]
        indices = [i for i in call.args if isinstance(self.method.values[i], TensorMeta)]
        try:
            vela = _container(delegate, self.named_data)
            sources, targets = indices[: len(vela.inputs)], indices[len(vela.inputs) :]
            inputs = tuple(_memory_order(self.values[i], self._meta(i)) for i in sources)
            started = time.perf_counter()
            outputs = execute(vela, self.config, inputs)
            seconds = time.perf_counter() - started
        except NpuError as error:
            raise RunFailed(
                f"delegate {call.delegate} failed on {self.config.name}",
                why=f"{type(error).__name__}: {error}",
            ) from error
        for index, array in zip(targets, outputs, strict=True):
            self.values[index] = _logical_order(array, self._meta(index))
        self.runs.append(DelegateRun(call.delegate, inputs, tuple(outputs), seconds))

    def _meta(self, index: int) -> TensorMeta:
        meta = self.method.values[index]
        assert isinstance(meta, TensorMeta)
        return meta


def _container(delegate: Delegate, named_data: Mapping[str, bytes]) -> Any:
    if "ethos" not in delegate.backend.lower():
        raise RunFailed(
            f"the host platform cannot run a delegate of {delegate.backend}",
            hint="compile for an ethos-u target",
        )
    return parse_velabin(delegate.blob, named_data)


def _initial(value: Any) -> Any:
    if not isinstance(value, TensorMeta):
        return value
    if value.constant is None:
        return None
    flat = torch.frombuffer(bytearray(value.constant), dtype=getattr(torch, value.dtype))
    return _permuted(flat, value)


def _in_memory_order(tensor: torch.Tensor, meta: TensorMeta) -> torch.Tensor:
    """The same values with strides that follow the dim_order, which kernels may look at."""
    return _permuted(tensor.permute(meta.dim_order).reshape(-1), meta)


def _memory_order(tensor: torch.Tensor, meta: TensorMeta) -> np.ndarray:
    """The tensor as it lies in memory: contiguous in the order of its dimensions' dim_order."""
    return tensor.permute(meta.dim_order).contiguous().numpy()


def _logical_order(array: np.ndarray, meta: TensorMeta) -> torch.Tensor:
    """The inverse of `_memory_order`, from flat memory read as the tensor's own dtype."""
    flat = torch.frombuffer(bytearray(array.tobytes()), dtype=getattr(torch, meta.dtype))
    return _permuted(flat, meta)


def _permuted(flat: torch.Tensor, meta: TensorMeta) -> torch.Tensor:
    in_memory = flat.reshape([meta.shape[d] for d in meta.dim_order])
    return in_memory.permute([meta.dim_order.index(d) for d in range(len(meta.shape))])

# SPDX-License-Identifier: Apache-2.0
"""The same program on this host: ExecuTorch's runtime with its own XNNPACK, another build on another CPU.

Where a program computes in integers, each operator has one right answer and both builds must give it. Where
it computes in float, kernels round in an order of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from report import pte, xnnpack
from report.errors import RunFailed
from report.quiet import quiet

HOST_XNNPACK = "ExecuTorch's XNNPACK on this host"

_FLOATS = frozenset({"fp32", "fp16", "bf16", "pfp32"})
_EXACT_KERNELS = frozenset(
    {
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
        "dim_order_ops::_clone_dim_order.out",
        "aten::view_copy.out",
        "aten::permute_copy.out",
        "aten::cat.out",
    }
)
"""Operators outside of a delegate that round once or not at all."""


def run_on_host(program: Path, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The outputs of a .pte by ExecuTorch's runtime in this process.

    Raises:
        RunFailed: the runtime refuses the program or fails to run it; `log` has what it printed.
    """
    method = pte.load(program).method()
    orders = [tensor.dim_order for tensor in method.tensors(method.inputs)]
    failure: Exception | None = None
    outputs: list[Any] = []
    with quiet() as said:
        try:
            outputs = _forward(program, inputs, orders)
        except Exception as error:  # the binding raises RuntimeError, an import what it likes
            failure = error
    if failure is not None:
        why = f"{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}"
        refused = RunFailed("ExecuTorch cannot run the program on this host", where=str(program), why=why)
        refused.log = said.text
        raise refused from failure
    return tuple(np.ascontiguousarray(value.detach().numpy()) for value in outputs)


def _forward(program: Path, inputs: Sequence[np.ndarray], orders: Sequence[Sequence[int]]) -> list[Any]:
    import executorch.kernels.quantized  # noqa: F401 (registers operators)
    import torch
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    module = _load_for_executorch(str(program))
    stored = [_in_order(np.array(a), order) for a, order in zip(inputs, orders, strict=True)]
    return module.forward([torch.from_numpy(array) for array in stored])


def _in_order(array: np.ndarray, dim_order: Sequence[int]) -> np.ndarray:
    """The same array, its bytes in `dim_order`."""
    if not array.ndim:
        return array
    return np.ascontiguousarray(array.transpose(dim_order)).transpose(np.argsort(dim_order))


def float_operators(method: pte.Method) -> list[str]:
    """Operators of a program that compute in float, by name; [] where everything is integer arithmetic."""
    inside = (node for delegate in method.delegates for node in xnnpack.read(delegate.blob))
    outside = (item.operator for item in method.instructions if isinstance(item, pte.KernelCall))
    return sorted({*_float_nodes(inside), *(name for name in outside if name not in _EXACT_KERNELS)})


def _float_nodes(nodes: Iterator[xnnpack.Node]) -> Iterator[str]:
    moves = (*xnnpack.TRANSPOSES, *xnnpack.COPIES)  # a Convert rounds once
    yield from (node.kind for node in nodes if node.dtype in _FLOATS and node.kind not in moves)

# SPDX-License-Identifier: Apache-2.0
"""The operator behind each kernel name of a .pte: the torch operator of that name, on the host.

A .pte names out-variants (``aten::add.out``); torch has the functional operator with the same
arguments (``aten::add.Tensor``). Few names are ExecuTorch's own or differ from torch in the last bit:
they are in `_OWN_KERNELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed::*

from report.errors import RunFailed


@dataclass(frozen=True)
class Kernel:
    """A callable of the first `inputs` values of a KernelCall; the next `outputs` are its out tensors."""

    call: Callable[..., Any]
    inputs: int
    outputs: int

    def __call__(self, arguments: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """Results for the argument values of one KernelCall, its out tensors left unread."""
        result = self.call(*arguments[: self.inputs])
        return tuple(result) if isinstance(result, tuple | list) else (result,)


def quantize_per_tensor(
    x: torch.Tensor, scale: float, zero_point: int, low: int, high: int, dtype: int
) -> torch.Tensor:
    """ExecuTorch's quantize kernel: the reciprocal of the scale is taken in single precision.

    torch's own operator takes it in double precision, which moves values near a tie by one step.
    Source: executorch kernels/quantized/cpu/op_quantize.cpp.

    Args:
        x: float32 tensor of any shape.
        dtype: ScalarType code of the result, which has the shape of `x`.
    """
    inverse = torch.tensor(1.0) / torch.tensor(scale, dtype=torch.float32)
    quantized = torch.round(x * inverse) + zero_point
    return torch.clamp(quantized, low, high).to(_DTYPES[dtype])


_DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    11: torch.bool,
}


_HELIUM_LANES = 16
_MAGIC = np.float32(3 << 22)  # float32 has no fraction bits here: adding it rounds to an integer
_INT32 = -(1 << 31), (1 << 31) - 1
_MAGIC_RANGE = float(1 << 22)
_SUM_RANGE = float(1 << 74)


def helium_quantize_per_tensor(
    x: torch.Tensor, scale: float, zero_point: int, low: int, high: int, dtype: int
) -> torch.Tensor:
    """The cortex_m quantize kernel as cores with Helium (Cortex-M55, M85) execute it.

    Groups of 16 elements, in memory order, are multiplied and rounded by one fused multiply-add, the sum
    with 3 * 2^22, and narrowed to 16 bits by truncation before they are clamped; elements left over round
    the product first and then to an integer. Source: the instructions of
    ``cortex_m::native::quantize_per_tensor_out`` in Arm's prebuilt firmware.

    Args:
        x: float32 tensor of any shape; its strides tell the memory order.
        dtype: ScalarType code, int8 in this kernel; the result has the shape and order of `x`.
    """
    order = sorted(range(x.ndim), key=x.stride, reverse=True)
    stored = x.permute(order)
    flat = stored.reshape(-1).numpy()
    inverse = np.float32(1) / np.float32(scale)
    whole = flat.size - flat.size % _HELIUM_LANES
    narrowed = (_fused_round(flat[:whole], inverse) + zero_point).astype(np.int32).astype(np.int16)
    rounded = np.rint(flat[whole:] * inverse).astype(np.float64)  # which has both limits of int32
    rest = np.clip(rounded, *_INT32).astype(np.int64) + zero_point
    rest = rest.astype(np.int32)  # the conversion saturates, the addition wraps
    codes = np.clip(np.concatenate([narrowed, rest]), low, high)
    inverse_order = [order.index(d) for d in range(x.ndim)]
    return torch.from_numpy(codes).to(_DTYPES[dtype]).reshape(stored.shape).permute(inverse_order)


def _fused_round(x: np.ndarray, inverse: np.float32) -> np.ndarray:
    """The integer in the bits of ``fma(x, inverse, _MAGIC)``, int64.

    The product of two float32 is exact in float64. Below 2^22 its nearest even integer is the answer; beyond,
    the float32 bits of the sum are what the kernel reads. The sum is exact in float64 too up to 2^74, above
    which all that is left of the addend is that it moves the product upwards, off a tie.
    """
    product = x.astype(np.float64) * np.float64(inverse)
    huge = np.abs(product) >= _SUM_RANGE
    total = np.where(huge, np.nextafter(product, np.inf), product + np.float64(_MAGIC))
    bits = total.astype(np.float32).view(np.int32).astype(np.int64)
    wrapped = bits - int(_MAGIC.view(np.int32))
    small = np.abs(product) < _MAGIC_RANGE
    return np.where(small, np.rint(np.where(small, product, 0)).astype(np.int64), wrapped)


def dequantize_per_tensor(
    x: torch.Tensor, scale: float, zero_point: int, low: int, high: int, dtype: int
) -> torch.Tensor:
    """ExecuTorch's dequantize kernel: ``float32(x - zero_point) * float32(scale)``, the shape of `x`."""
    return (x.to(torch.int32) - zero_point).to(torch.float32) * torch.tensor(scale, dtype=torch.float32)


def _et_view(x: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    return x.reshape(tuple(size))


def _to_dim_order(x: torch.Tensor, dtype: int | None, *_: Any) -> torch.Tensor:
    """dim_order_ops copy: the values keep their place, the memory order is the output tensor's matter."""
    return x.to(_DTYPES[dtype]) if dtype is not None else x.clone()


_OWN_KERNELS = {
    "quantized_decomposed::quantize_per_tensor.out": Kernel(quantize_per_tensor, 6, 1),
    "cortex_m::quantize_per_tensor.out": Kernel(helium_quantize_per_tensor, 6, 1),
    "cortex_m::dequantize_per_tensor.out": Kernel(dequantize_per_tensor, 6, 1),
    "executorch_prim::et_view.default": Kernel(_et_view, 2, 1),
    "dim_order_ops::_to_dim_order_copy.out": Kernel(lambda x, _, order: x.clone(), 3, 1),
    "dim_order_ops::_clone_dim_order.out": Kernel(lambda x, *_: x.clone(), 3, 1),
}


@lru_cache(maxsize=512)
def find(name: str) -> Kernel:
    """The kernel called `name` (``namespace::operator.overload``).

    Raises:
        RunFailed: this host has no operator of that name.
    """
    if name in _OWN_KERNELS:
        return _OWN_KERNELS[name]
    namespace, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    function = None if packet is None else _functional(packet, overload)
    if function is None:
        raise RunFailed(f"operator {name} is not known to torch on this host", hint="run on another platform")
    names = _input_names(packet, overload, function)
    return Kernel(_by_keyword(function, names), len(names), len(function._schema.returns))


def _functional(packet: Any, overload: str) -> Any:
    """The overload without out arguments that takes every argument of `overload`; the shortest such."""
    if overload not in packet.overloads():
        plain = overload.removesuffix("_out").removesuffix("out") or "default"
        return getattr(packet, plain, None)
    wanted = _signature(getattr(packet, overload))
    fitting = [
        candidate
        for candidate in (getattr(packet, name) for name in packet.overloads())
        if not any(a.is_out for a in candidate._schema.arguments) and wanted <= _signature(candidate)
    ]
    return min(fitting, key=lambda candidate: len(candidate._schema.arguments), default=None)


def _input_names(packet: Any, overload: str, function: Any) -> tuple[str, ...]:
    source = getattr(packet, overload) if overload in packet.overloads() else function
    return tuple(a.name for a in source._schema.arguments if not a.is_out)


def _by_keyword(function: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    return lambda *values: function(**dict(zip(names, values, strict=True)))


def _signature(function: Any) -> set[tuple[str, str]]:
    return {(a.name, str(a.type)) for a in function._schema.arguments if not a.is_out}

# SPDX-License-Identifier: Apache-2.0
"""The kernels of the host reference: names resolve as ExecuTorch writes them, rounding is as it does it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fvp.host import kernels
from report.errors import RunFailed


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("aten::add.out", [torch.tensor([1.0]), torch.tensor([2.0]), 3], [7.0]),
        ("aten::mul.Scalar_out", [torch.tensor([3.0]), 2], [6.0]),
        ("aten::fmod.Tensor_out", [torch.tensor([5.5]), torch.tensor([2.0])], [1.5]),
        ("aten::hardtanh.out", [torch.tensor([9.0, -9.0]), 0, 6], [6.0, 0.0]),
        ("aten::full_like.out", [torch.zeros(2), 4, None], [4.0, 4.0]),
        ("executorch_prim::et_view.default", [torch.tensor([[1.0], [2.0]]), [2]], [1.0, 2.0]),
    ],
)
def test_a_kernel_name_finds_its_operator(name: str, arguments: list, expected: list[float]) -> None:
    surplus = [torch.empty(0), torch.empty(0)]  # a KernelCall also names its out tensors
    (result,) = kernels.find(name)([*arguments, *surplus])
    assert result.tolist() == expected


def test_several_outputs_come_in_order() -> None:
    kernel = kernels.find("aten::topk.values")
    values, indices = kernel([torch.tensor([3.0, 9.0, 5.0]), 2, -1, True, True])
    assert (values.tolist(), indices.tolist(), kernel.outputs) == ([9.0, 5.0], [1, 2], 2)


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(RunFailed, match="mine::nothing"):
        kernels.find("mine::nothing.out")


@pytest.mark.parametrize("scale", [0.023083984851837158, 0.1, 1 / 3, 0.00392156862745098])
def test_quantisation_is_done_in_single_precision(scale: float) -> None:
    """Against the C++ formula, written out in NumPy's float32, on values at and around every tie."""
    ties = (np.arange(-130, 130) + 0.5) * scale
    x = np.concatenate(
        [np.nextafter(ties.astype(np.float32), np.float32(d)) for d in (-9, 9)] + [np.float32(ties)]
    )
    inverse = np.float32(1) / np.float32(scale)
    expected = np.clip(np.rint(x * inverse) + 3, -128, 127).astype(np.int8)
    actual = kernels.quantize_per_tensor(torch.from_numpy(x), scale, 3, -128, 127, 1)
    np.testing.assert_array_equal(actual.numpy(), expected)


def test_quantisation_differs_from_double_precision_somewhere() -> None:
    """The reason for a kernel of our own: torch's operator rounds some ties the other way."""
    scale = 0.013
    x = torch.from_numpy(((np.arange(-1280, 1280) + 0.5) * scale).astype(np.float32))
    theirs = torch.ops.quantized_decomposed.quantize_per_tensor.default(
        x, scale, 0, -32768, 32767, torch.int16
    )
    ours = kernels.quantize_per_tensor(x, scale, 0, -32768, 32767, 2)
    assert not torch.equal(ours, theirs) and (ours.int() - theirs.int()).abs().max() == 1

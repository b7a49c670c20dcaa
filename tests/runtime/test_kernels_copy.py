# SPDX-License-Identifier: Apache-2.0
"""Kernels that move elements, against ExecuTorch's on the same .pte (torch where the wheel has no kernel)."""

from __future__ import annotations

import pytest
import torch
from kernel_data import FLOATS, INTEGERS, values
from kernel_host import Argument, Out, ProgramBuilder, assert_same, check, run_ours

TYPES = (torch.int8, torch.int16, torch.float32, torch.int64, torch.bool)
SHAPE = (3, 1, 4, 5)


def _calls(x: torch.Tensor) -> list[tuple[str, list[Argument], tuple[int, ...]]]:
    """Operator, arguments and result shape of one call of each operator on a tensor of SHAPE."""
    return [
        ("permute_copy.out", [x, [2, 0, -1, 1]], (4, 3, 5, 1)),
        ("transpose_copy.int_out", [x, 0, -1], (5, 1, 4, 3)),
        ("view_copy.out", [x, [6, -1]], (6, 10)),
        ("expand_copy.out", [x, [2, 3, 6, -1, 5], False], (2, 3, 6, 4, 5)),
        ("squeeze_copy.dim_out", [x, 1], (3, 4, 5)),
        ("squeeze_copy.dim_out", [x, 0], SHAPE),
        ("squeeze_copy.dims_out", [x, [0, 1]], (3, 4, 5)),
        ("unsqueeze_copy.out", [x, -1], (3, 1, 4, 5, 1)),
        ("slice_copy.Tensor_out", [x, 3, 1, 5, 2], (3, 1, 4, 2)),
        ("slice_copy.Tensor_out", [x, 0, None, -1, 1], (2, 1, 4, 5)),
        ("slice_copy.Tensor_out", [x, 2, -3, 9223372036854775807, 1], (3, 1, 3, 5)),
        ("select_copy.int_out", [x, 2, -1], (3, 1, 5)),
        ("repeat.out", [x, [2, 1, 3, 1, 2]], (2, 3, 3, 4, 10)),
        ("flip.out", [x, [0, -1]], SHAPE),
        ("unfold_copy.out", [x, 3, 3, 2], (3, 1, 4, 2, 3)),
        ("as_strided_copy.out", [x, [2, 3], [7, 2], 5], (2, 3)),
        ("diagonal_copy.out", [x, 1, 2, 3], (3, 1, 4)),
        ("diagonal_copy.out", [x, -2, 2, 3], (3, 1, 2)),
        ("narrow_copy.out", [x, 3, 1, 3], (3, 1, 4, 3)),
        ("alias_copy.out", [x], SHAPE),
        ("detach_copy.out", [x], SHAPE),
        ("lift_fresh_copy.out", [x], SHAPE),
        ("clone.out", [x, None], SHAPE),
        ("_to_copy.out", [x, False, None], SHAPE),
        ("constant_pad_nd.out", [x, [1, 2, 0, 3], 1], (3, 1, 7, 8)),
        ("full_like.out", [x, 1, None], SHAPE),
        ("fill.Scalar_out", [x, 1], SHAPE),
        ("cat.out", [[x, x], -2], (3, 1, 8, 5)),
        ("stack.out", [[x, x, x], 1], (3, 3, 1, 4, 5)),
    ]


def test_negative_padding_cuts_off() -> None:
    """As torch has it; the wheel's kernel refuses it."""
    x = values(torch.float32, SHAPE)
    builder = ProgramBuilder()
    builder.call("aten::constant_pad_nd.out", x, [-1, 2, 1, -2], 0, Out((3, 1, 3, 6), torch.float32))
    assert_same(run_ours(builder).outputs[0], torch.constant_pad_nd(x, [-1, 2, 1, -2], 0), "pad")


@pytest.mark.parametrize("dtype", TYPES)
def test_same_elements_in_the_same_places(dtype: torch.dtype) -> None:
    builder, names = ProgramBuilder(), []
    for operator, arguments, shape in _calls(values(dtype, SHAPE)):
        builder.call(f"aten::{operator}", *arguments, Out(shape, dtype))
        names.append(f"{operator} {arguments[1:]}")
    check(builder, names)


def test_parts() -> None:
    x = values(torch.int16, SHAPE)
    builder, names = ProgramBuilder(), []
    builder.call("aten::split_copy.Tensor_out", x, 2, 3, [Out((3, 1, 4, k), torch.int16) for k in (2, 2, 1)])
    builder.call(
        "aten::split_with_sizes_copy.out", x, [1, 3], 2, [Out((3, 1, k, 5), torch.int16) for k in (1, 3)]
    )
    builder.call("aten::unbind_copy.int_out", x, 0, [Out((1, 4, 5), torch.int16) for _ in range(3)])
    names = [f"split {k}" for k in range(3)] + ["sizes 0", "sizes 1"] + [f"unbind {k}" for k in range(3)]
    for dim, start, end, step, shape in ((2, 0, 4, 2, (3, 1, 2, 5)), (0, 1, 9, 1, (2, 1, 4, 5))):
        source = values(torch.int16, shape, 1)
        builder.call("aten::slice_scatter.out", x, source, dim, start, end, step, Out(SHAPE, torch.int16))
        names.append(f"slice_scatter {dim}")
    row = values(torch.int16, (3, 1, 5), 2)
    builder.call("aten::select_scatter.out", x, row, 2, -2, Out(SHAPE, torch.int16))
    check(builder, [*names, "select_scatter"])


def test_conversions() -> None:
    builder, names = ProgramBuilder(), []
    for source in (*FLOATS, *INTEGERS, torch.bool):
        for target in (*FLOATS, *INTEGERS, torch.bool):
            x = values(source, (12,), 4)
            if source.is_floating_point and not target.is_floating_point and target != torch.bool:
                x = (
                    (torch.nan_to_num(x, 1, 2, 3).clamp(-99, 99)).abs().to(source)
                )  # others are undefined in C++
            builder.call("dim_order_ops::_to_dim_order_copy.out", x, False, None, Out((12,), target))
            names.append(f"{source} to {target}")
    check(builder, names)


@pytest.mark.parametrize("operator", ["_to_dim_order_copy.out", "_clone_dim_order.out"])
def test_change_of_memory_order(operator: str) -> None:
    x = values(torch.float32, (2, 3, 4, 5))
    y = values(torch.int8, (2, 3, 4, 5)).to(memory_format=torch.channels_last)
    builder = ProgramBuilder()
    last, first = (0, 2, 3, 1), (0, 1, 2, 3)
    builder.call(f"dim_order_ops::{operator}", x, False, list(last), Out((2, 3, 4, 5), torch.float32, last))
    builder.call(f"dim_order_ops::{operator}", y, False, list(first), Out((2, 3, 4, 5), torch.int8))
    builder.call(f"dim_order_ops::{operator}", y, False, list(last), Out((2, 3, 4, 5), torch.int8, last))
    check(builder, ["to channels last", "to channels first", "kept"])


def test_made_from_scalars() -> None:
    builder, names = ProgramBuilder(), []
    for dtype in (torch.float32, torch.int32, torch.int64, torch.float64):
        builder.call("aten::full.out", [2, 3], 7, Out((2, 3), dtype))
        builder.call("aten::zeros.out", [4], Out((4,), dtype))
        builder.call("aten::ones.out", [1, 4], Out((1, 4), dtype))
        builder.call("aten::scalar_tensor.out", 5, Out((), dtype))
        builder.call("aten::arange.out", 6, Out((6,), dtype))
        builder.call("aten::arange.start_out", 1, 12, 3, Out((4,), dtype))
        builder.call(
            "aten::fill.Tensor_out", values(dtype, (3, 2)), torch.tensor(3, dtype=dtype), Out((3, 2), dtype)
        )
        names += [
            f"{n} {dtype}" for n in ("full", "zeros", "ones", "scalar", "arange", "arange from", "fill")
        ]
    builder.call("aten::full.out", [3], 0.1, Out((3,), torch.float32))
    builder.call("aten::arange.start_out", 0.0, 1.0, 0.1, Out((10,), torch.float32))
    check(builder, [*names, "full 0.1", "arange of tenths"])


def test_copy_broadcasts_its_source() -> None:
    target, source = values(torch.float32, (3, 4)), values(torch.int8, (4,))
    builder = ProgramBuilder()
    builder.call("aten::copy.out", target, source, False, Out((3, 4), torch.float32))
    check(builder, ["copy"])


def test_t_copy() -> None:
    builder = ProgramBuilder()
    builder.call("aten::t_copy.out", values(torch.int8, (3, 4)), Out((4, 3), torch.int8))
    builder.call("aten::t_copy.out", values(torch.int8, (3,)), Out((3,), torch.int8))
    check(builder, ["matrix", "vector"])


def test_empty_tensors() -> None:
    none, some = torch.empty(0), values(torch.float32, (2, 3))
    builder = ProgramBuilder()
    builder.call("aten::cat.out", [none, some], 0, Out((2, 3), torch.float32))
    builder.call("aten::slice_copy.Tensor_out", some, 1, 3, 2, 1, Out((2, 0), torch.float32))
    run = run_ours(builder)
    assert run.status == 0, run.log
    assert_same(run.outputs[0], some, "cat")
    assert run.outputs[1].shape == (2, 0)


X = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("operator", "arguments", "reason"),
    [
        ("permute_copy.out", (X, [0, 0], Out((2, 2), torch.float32)), "twice"),
        ("permute_copy.out", (X, [0], Out((2,), torch.float32)), "each dimension"),
        ("select_copy.int_out", (X, 1, 3, Out((2,), torch.float32)), "index 3 of 3"),
        ("select_copy.int_out", (X, 2, 0, Out((2,), torch.float32)), "dimension 2 of 2"),
        ("slice_copy.Tensor_out", (X, 0, 0, 1, 0, Out((1, 3), torch.float32)), "step 0"),
        ("view_copy.out", (X, [4, 2], Out((4, 2), torch.float32)), "6 elements"),
        ("as_strided_copy.out", (X, [2, 4], [3, 1], 0, Out((2, 4), torch.float32)), "leaves the tensor"),
        ("as_strided_copy.out", (X, [2], [-1], 1, Out((2,), torch.float32)), "leaves the tensor"),
        ("expand_copy.out", (X, [2, 4], False, Out((2, 4), torch.float32)), "cannot become 4"),
        ("cat.out", ([X, torch.zeros(2, 4)], 0, Out((4, 3), torch.float32)), "expected 3"),
        ("narrow_copy.out", (X, 1, 2, 2, Out((2, 2), torch.float32)), "2 elements from 2 of 3"),
        ("unfold_copy.out", (X, 1, 4, 1, Out((2, 1, 4), torch.float32)), "windows of 4"),
        ("clone.out", (X, None, Out((3, 2), torch.float32)), "does not fit"),
        ("arange.start_out", (0, 5, 0, Out((5,), torch.float32)), "no length"),
        ("constant_pad_nd.out", (X, [-2, -2], 0, Out((2, 0), torch.float32)), "padding of dimension 1"),
    ],
)
def test_wrong_arguments_are_refused_with_a_reason(
    operator: str, arguments: tuple[Argument, ...], reason: str
) -> None:
    builder = ProgramBuilder()
    builder.call(f"aten::{operator}", *arguments)
    run = run_ours(builder)
    assert run.status == 5, run.log
    assert f"aten::{operator}" in run.log
    assert reason in run.log

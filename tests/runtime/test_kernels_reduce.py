# SPDX-License-Identifier: Apache-2.0
"""Reductions and index operators against ExecuTorch's on the same .pte (all.*: against torch)."""

from __future__ import annotations

import pytest
import torch
from kernel_data import INTEGERS, values
from kernel_host import Argument, Out, ProgramBuilder, assert_same, check, run_ours

TYPES = (torch.float32, torch.float64, *INTEGERS)
SHAPE = (3, 4, 5)
DIMS: list[tuple[list[int], bool, tuple[int, ...]]] = [
    ([0], False, (4, 5)),
    ([-1], True, (3, 4, 1)),
    ([0, 2], False, (4,)),
    ([0, 1, 2], False, ()),
]


@pytest.mark.parametrize("operator", ["amax", "amin", "sum", "mean", "any", "prod"])
def test_over_dimensions(operator: str) -> None:
    builder, names = ProgramBuilder(), []
    for dtype in TYPES:
        x = values(dtype, SHAPE)
        x = (
            torch.nan_to_num(x, 1, 2, 3).clamp(-9, 9)
            if operator in ("sum", "mean") and x.is_floating_point()
            else x
        )
        for dims, keep, shape in DIMS:
            call, arguments, result = _call(operator, dtype, dims, keep)
            if call:
                builder.call(f"aten::{call}", x, *arguments, Out(shape, result))
                names.append(f"{operator} {dtype} {dims}")
    check(builder, names)


def _call(
    operator: str, dtype: torch.dtype, dims: list[int], keep: bool
) -> tuple[str, list[Argument], torch.dtype]:
    """Overload, arguments and result type; no overload when the operator has no such call."""
    integral = not dtype.is_floating_point
    if operator == "sum":
        return "sum.IntList_out", [dims, keep, None], torch.int64 if integral else dtype
    if operator == "mean":
        return "" if integral else "mean.out", [dims, keep, None], dtype
    if operator == "any":
        return "any.dims_out", [dims, keep], torch.bool
    if operator == "prod":
        result = torch.int64 if integral else dtype
        return "prod.int_out" if len(dims) == 1 else "", [dims[0], keep, None], result
    return f"{operator}.out", [dims, keep], dtype


def test_over_everything() -> None:
    builder, names = ProgramBuilder(), []
    for dtype in TYPES:
        x = values(dtype, SHAPE, 2)
        for operator in ("max.unary_out", "min.unary_out"):
            builder.call(f"aten::{operator}", x, Out((), dtype))
            names.append(f"{operator} {dtype}")
        builder.call("aten::any.all_out", x, Out((), torch.bool))
        names.append(f"any {dtype}")
        for operator in ("argmax.out", "argmin.out"):
            builder.call(f"aten::{operator}", x, None, False, Out((), torch.int64))
            builder.call(f"aten::{operator}", x, 1, True, Out((3, 1, 5), torch.int64))
            names += [f"{operator} {dtype}", f"{operator} {dtype} of dimension 1"]
    check(builder, names)


def test_all() -> None:
    builder, expected = ProgramBuilder(), []
    for x in (torch.tensor([[1, 0], [2, 3]]), torch.tensor([[True, True], [False, True]])):
        builder.call("aten::all.all_out", x, Out((), torch.bool))
        builder.call("aten::all.out", x, 1, False, Out((2,), torch.bool))
        expected += [x.all(), x.all(1)]
    run = run_ours(builder)
    assert run.status == 0, run.log
    for ours, theirs in zip(run.outputs, expected, strict=True):
        assert_same(ours, theirs, "all")


def test_chosen_by_index() -> None:
    builder, names = ProgramBuilder(), []
    index = torch.tensor([2, 0, 2, 1])
    for dtype in (torch.float32, torch.int8, torch.int64):
        x = values(dtype, SHAPE)
        builder.call("aten::index_select.out", x, 0, index, Out((4, 4, 5), dtype))
        builder.call("aten::index_select.out", x, -1, index, Out((3, 4, 4), dtype))
        picks = torch.randint(0, 4, (2, 6, 5), generator=torch.Generator().manual_seed(0))
        builder.call("aten::gather.out", x, 1, picks, False, Out((2, 6, 5), dtype))
        table = values(dtype, (7, 3), 1)
        builder.call("aten::embedding.out", table, picks, -1, False, False, Out((2, 6, 5, 3), dtype))
        places = torch.tensor([[[0, 1, 2, 0, 1]]])
        builder.call("aten::scatter.src_out", x, 0, places, values(dtype, (1, 1, 5), 3), Out(SHAPE, dtype))
        builder.call("aten::scatter.value_out", x, 0, places, 1, Out(SHAPE, dtype))
        names += [
            f"{n} {dtype}"
            for n in ("select 0", "select -1", "gather", "embedding", "scatter", "scatter value")
        ]
    check(builder, names)


@pytest.mark.parametrize("largest", [True, False])
def test_topk(largest: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randperm(60, generator=generator).reshape(SHAPE)
    builder, names = ProgramBuilder(), []
    for dtype in (torch.float32, torch.int32, torch.int8):
        for dim, k, shape in ((-1, 3, (3, 4, 3)), (1, 4, (3, 4, 5)), (0, 1, (1, 4, 5))):
            outs = Out(shape, dtype), Out(shape, torch.int64)
            builder.call("aten::topk.values", x.to(dtype), k, dim, largest, True, *outs)
            names += [f"values {dtype} {dim}", f"indices {dtype} {dim}"]
    check(builder, names)


def test_topk_of_equals_takes_the_first_and_nan_is_largest() -> None:
    x = torch.tensor([1.0, 3.0, float("nan"), 3.0, 1.0])
    builder = ProgramBuilder()
    builder.call("aten::topk.values", x, 4, 0, True, True, Out((4,), torch.float32), Out((4,), torch.int64))
    assert run_ours(builder).outputs[1].tolist() == [2, 1, 3, 0]


X = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("operator", "arguments", "reason"),
    [
        ("amax.out", (torch.empty(0), [], False, Out((), torch.float32)), "no elements"),
        ("sum.IntList_out", (X, [2], False, None, Out((2, 3), torch.float32)), "dimension 2 of 2"),
        ("index_select.out", (X, 0, torch.tensor([2]), Out((1, 3), torch.float32)), "index 2 of 2"),
        ("gather.out", (X, 1, torch.tensor([[3]]), False, Out((1, 1), torch.float32)), "index 3 of 3"),
        (
            "embedding.out",
            (X, torch.tensor([-1]), -1, False, False, Out((1, 3), torch.float32)),
            "index -1 of 2",
        ),
        (
            "topk.values",
            (X, 4, 1, True, True, Out((2, 4), torch.float32), Out((2, 4), torch.int64)),
            "smaller",
        ),
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

# SPDX-License-Identifier: Apache-2.0
"""Operators on scalars against Python's own arithmetic, and views and rows against torch."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from kernel_data import values
from kernel_host import Out, ProgramBuilder, assert_same, run_ours

NUMBERS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (7.5, 2), (-7.5, 2), (7, -2.5)]
BINARY = {
    "add.Scalar": lambda a, b: a + b,
    "sub.Scalar": lambda a, b: a - b,
    "mul.Scalar": lambda a, b: a * b,
    "truediv.Scalar": lambda a, b: a / b,
    "floordiv.Scalar": lambda a, b: a // b,
    "eq.Scalar": lambda a, b: a == b,
    "lt.Scalar": lambda a, b: a < b,
    "le.Scalar": lambda a, b: a <= b,
    "gt.Scalar": lambda a, b: a > b,
    "ge.Scalar": lambda a, b: a >= b,
    "sym_max.Scalar": lambda a, b: type(a + b)(max(a, b)),
    "sym_min.Scalar": lambda a, b: type(a + b)(min(a, b)),
}
UNARY = {
    "neg.Scalar": lambda a: -a,
    "sym_float.Scalar": float,
    "sym_int.Scalar": int,
    "trunc.Scalar": math.trunc,
    "ceil.Scalar": math.ceil,
    "round.Scalar": round,
    "sym_not.Scalar": lambda a: not a,
}


def _number(raw: torch.Tensor, like: bool | int | float) -> bool | int | float:
    """The 8 (bool: 1) bytes that the runner wrote, as a number of the expected kind."""
    data = raw.numpy().tobytes()
    return struct.unpack("?" if isinstance(like, bool) else "<d" if isinstance(like, float) else "<q", data)[
        0
    ]


def _results(calls: list[tuple[str, tuple[float, ...], float]]) -> list[float]:
    builder = ProgramBuilder()
    for operator, arguments, expected in calls:
        builder.call(operator, *arguments, builder.scalar_out(1 if isinstance(expected, bool) else 8))
    run = run_ours(builder)
    assert run.status == 0, run.log
    return [_number(raw, expected) for raw, (_, _, expected) in zip(run.outputs, calls, strict=True)]


def test_two_scalars() -> None:
    calls = [
        (f"executorch_prim::{name}", pair, function(*pair))
        for name, function in BINARY.items()
        for pair in NUMBERS
    ]
    assert _results(calls) == [expected for _, _, expected in calls]


def test_one_scalar() -> None:
    calls = [
        (f"executorch_prim::{name}", (value,), function(value))
        for name, function in UNARY.items()
        for value in (0, 3, -3, 2.5, -2.5, 3.5)
    ]
    assert _results(calls) == [expected for _, _, expected in calls]


def test_sizes_are_divided_towards_zero() -> None:
    calls = [
        ("executorch_prim::floordiv.int", (-7, 2), -3),
        ("executorch_prim::mod.int", (-7, 2), -1),
        ("executorch_prim::mod.Scalar", (7, 3), 1),
        ("executorch_prim::sym_ite.Scalar", (True, 4, 5), 4),
        ("executorch_prim::sym_ite.Scalar", (False, 4, 5), 5),
    ]
    assert _results(calls) == [expected for _, _, expected in calls]


@pytest.mark.parametrize("operator", ["floordiv.Scalar", "floordiv.int", "mod.int"])
def test_division_by_zero_is_refused(operator: str) -> None:
    builder = ProgramBuilder()
    builder.call(f"executorch_prim::{operator}", 3, 0, builder.scalar_out(8))
    run = run_ours(builder)
    assert run.status == 5
    assert f"executorch_prim::{operator}: division by zero" in run.log


def test_tensor_to_scalar() -> None:
    x = values(torch.float32, (3, 5))
    builder = ProgramBuilder()
    builder.call("aten::sym_size.int", x, -1, builder.scalar_out(8))
    builder.call("aten::sym_numel", x, builder.scalar_out(8))
    builder.call("aten::_local_scalar_dense", torch.tensor(-5, dtype=torch.int8), builder.scalar_out(8))
    builder.call("aten::_local_scalar_dense", torch.tensor(0.5), builder.scalar_out(8))
    run = run_ours(builder)
    assert run.status == 0, run.log
    assert [_number(r, e) for r, e in zip(run.outputs, (5, 15, -5, 0.5), strict=True)] == [5, 15, -5, 0.5]


def test_view_shares_memory_and_rows_are_copied() -> None:
    x = values(torch.float32, (3, 4))
    builder = ProgramBuilder()
    builder.call("executorch_prim::et_view.default", x, [2, -1], Out((2, 6), torch.float32))
    row = values(torch.float32, (4,), 1)
    builder.call("executorch_prim::et_copy_index.tensor", x, row, 1)
    run = run_ours(builder)
    assert run.status == 0, run.log
    expected = x.clone()
    expected[1] = row
    assert_same(run.outputs[0], expected.reshape(2, 6), "the view sees the row that is written later")

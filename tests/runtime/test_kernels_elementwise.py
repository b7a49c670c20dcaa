# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels against ExecuTorch's on the same .pte: element types, special values, broadcasting."""

from __future__ import annotations

import pytest
import torch
from kernel_data import FLOATS, INTEGERS, nonzero, values
from kernel_host import Argument, Out, ProgramBuilder, assert_same, check, run_ours

SHAPES = (((4, 5), (4, 5)), ((3, 1, 5), (4, 1)), ((7,), ()))
PAIRS = [(d, d) for d in (*FLOATS, *INTEGERS)] + [
    (torch.int8, torch.float32),
    (torch.uint8, torch.int8),
    (torch.int32, torch.int64),
    (torch.bool, torch.int32),
    (torch.float16, torch.float32),
    (torch.int64, torch.float16),
    (torch.float32, torch.float64),
]
ARITHMETIC = ["add.out", "sub.out", "mul.out", "div.out", "maximum.out", "minimum.out"]
DIVISIONS = [
    "fmod.Tensor_out",
    "remainder.Tensor_out",
    "floor_divide.out",
    "pow.Tensor_Tensor_out",
    "atan2.out",
]
COMPARISONS = [f"{name}.Tensor_out" for name in ("eq", "ne", "lt", "le", "gt", "ge")]
LOGIC = ["logical_and.out", "logical_or.out", "logical_xor.out"]
BITS = [f"bitwise_{name}.Tensor_out" for name in ("and", "or", "xor", "left_shift", "right_shift")]
ROUNDING = "abs neg sign relu floor ceil trunc round".split()
FUNCTIONS = (
    "reciprocal sqrt rsqrt sigmoid exp expm1 log log2 log10 log1p erf sin cos tan asin acos atan sinh cosh "
    "tanh asinh acosh atanh"
).split()


def _operands(operator: str, types: tuple[torch.dtype, torch.dtype], shapes: tuple[tuple[int, ...], ...]):
    if operator.startswith("pow"):
        return nonzero(types[0], shapes[0]).abs(), nonzero(types[1], shapes[1], 1) % 4
    if "shift" in operator:
        return values(types[0], shapes[0]), (values(types[1], shapes[1], 1) % 7).abs().to(types[1])
    other = nonzero if operator in DIVISIONS or "div" in operator else values
    return values(types[0], shapes[0]), other(types[1], shapes[1], 1)


def _result_type(operator: str, promoted: torch.dtype) -> torch.dtype:
    if operator in COMPARISONS + LOGIC:
        return torch.bool
    floating = operator in ("div.out", "atan2.out") and not promoted.is_floating_point
    return torch.float32 if floating else promoted


@pytest.mark.parametrize("operator", ARITHMETIC + DIVISIONS + COMPARISONS + LOGIC + BITS)
def test_two_tensors(operator: str) -> None:
    builder, names = ProgramBuilder(), []
    for types in PAIRS:
        promoted = torch.promote_types(*types)
        if operator in BITS and promoted.is_floating_point:
            continue
        if operator.startswith("pow") and torch.bool in types:
            continue
        for shapes in SHAPES:
            a, b = _operands(operator, types, shapes)
            out = Out(tuple(torch.broadcast_shapes(*shapes)), _result_type(operator, promoted))
            alpha: list[Argument] = [2] if operator in ("add.out", "sub.out") else []
            builder.call(f"aten::{operator}", a, b, *alpha, out)
            names.append(f"{operator} {types} {shapes}")
    check(builder, names)


SCALAR = ["add", "sub", "rsub", "mul", "fmod", "remainder", "eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("operator", SCALAR)
@pytest.mark.parametrize("scalar", [3, 2.5])
def test_tensor_and_scalar(operator: str, scalar: float) -> None:
    builder, names = ProgramBuilder(), []
    predicate = operator in ("eq", "ne", "lt", "le", "gt", "ge")
    for dtype in (*FLOATS, *INTEGERS):
        promoted = torch.result_type(torch.empty(1, dtype=dtype), scalar)
        if operator in ("add", "sub", "rsub") and promoted != dtype:
            continue  # ExecuTorch refuses a result of another type here
        alpha: list[Argument] = [2] if operator in ("add", "sub", "rsub") else []
        out = Out((4, 5), torch.bool if predicate else promoted)
        builder.call(f"aten::{operator}.Scalar_out", values(dtype, (4, 5)), scalar, *alpha, out)
        names.append(f"{operator} {dtype} {scalar}")
    check(builder, names)


def test_powers_bits_and_shifts_with_a_scalar() -> None:
    builder, names = ProgramBuilder(), []
    for dtype in (*FLOATS, *INTEGERS):
        base = nonzero(dtype, (4, 5)).abs().clamp(max=5)
        builder.call("aten::pow.Tensor_Scalar_out", base, 3, Out((4, 5), dtype))
        builder.call("aten::pow.Scalar_out", 3, base, Out((4, 5), dtype))
        names += [f"pow {dtype} 3", f"pow 3 {dtype}"]
    for dtype in INTEGERS:
        for kind in ("and", "or", "xor"):
            builder.call(f"aten::bitwise_{kind}.Scalar_out", values(dtype, (9,)), 6, Out((9,), dtype))
            names.append(f"{kind} {dtype}")
        for kind in ("left", "right"):
            shift = f"aten::bitwise_{kind}_shift.Tensor_Scalar_out"
            builder.call(shift, values(dtype, (9,)), 3, Out((9,), dtype))
            names.append(f"{kind} {dtype}")
    check(builder, names)


def test_division_by_a_scalar_is_a_division() -> None:
    """The wheel's own kernel multiplies float tensors by the reciprocal; portable kernels divide."""
    x = values(torch.float32, (40,), 3)
    builder = ProgramBuilder()
    builder.call("aten::div.Scalar_out", x, 3, Out((40,), torch.float32))
    run = run_ours(builder)
    assert_same(run.outputs[0], x / torch.full((40,), 3.0), "div")


@pytest.mark.parametrize("mode", ["trunc", "floor", None])
def test_division_with_a_rounding_mode(mode: str | None) -> None:
    builder, names = ProgramBuilder(), []
    for dtype in (*FLOATS, *INTEGERS):
        result = dtype if mode or dtype.is_floating_point else torch.float32
        builder.call(
            "aten::div.out_mode", values(dtype, (4, 5)), nonzero(dtype, (5,)), mode, Out((4, 5), result)
        )
        names.append(f"{dtype} {mode}")
    check(builder, names)


@pytest.mark.parametrize("operator", ROUNDING)
def test_one_tensor(operator: str) -> None:
    builder = ProgramBuilder()
    for dtype in (*FLOATS, *INTEGERS):
        builder.call(f"aten::{operator}.out", values(dtype, (4, 6)), Out((4, 6), dtype))
    check(builder, [f"{operator} {dtype}" for dtype in (*FLOATS, *INTEGERS)])


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_functions(operator: str) -> None:
    builder, types = ProgramBuilder(), (*FLOATS, *INTEGERS, torch.bool)
    for dtype in types:
        x = values(dtype, (4, 6))
        x = x.clamp(max=1e4) if dtype.is_floating_point else x
        result = dtype if dtype.is_floating_point else torch.float32
        builder.call(f"aten::{operator}.out", x, Out((4, 6), result))
    check(builder, [f"{operator} {dtype}" for dtype in types])


def test_predicates() -> None:
    builder, names = ProgramBuilder(), []
    for operator in ("logical_not", "isnan", "isinf"):
        for dtype in (*FLOATS, *INTEGERS, torch.bool):
            builder.call(f"aten::{operator}.out", values(dtype, (8,)), Out((8,), torch.bool))
            names.append(f"{operator} {dtype}")
    for dtype in (*INTEGERS, torch.bool):
        builder.call("aten::bitwise_not.out", values(dtype, (8,)), Out((8,), dtype))
        names.append(f"bitwise_not {dtype}")
    check(builder, names)


def test_clamps() -> None:
    builder, names = ProgramBuilder(), []
    for dtype in (*FLOATS, *INTEGERS):
        x, out = values(dtype, (4, 6)), Out((4, 6), dtype)
        builder.call("aten::hardtanh.out", x, -1, 2, out)
        names.append(f"hardtanh {dtype}")
        for low, high in ((-1, 2), (None, 2), (-1, None), (-50, 50)):
            if dtype == torch.uint8 and low is not None:
                low = 1
            builder.call("aten::clamp.out", x, low, high, out)
            names.append(f"clamp {dtype} {low} {high}")
        for low, high in ((values(dtype, (6,), 1), values(dtype, (4, 1), 2)), (values(dtype, (6,), 3), None)):
            builder.call("aten::clamp.Tensor_out", x, low, high, out)
            names.append(f"clamp {dtype} by tensors")
    check(builder, names)


def test_choices() -> None:
    builder, names = ProgramBuilder(), []
    for dtype in (*FLOATS, *INTEGERS):
        mask = values(torch.bool, (6,))
        builder.call("aten::masked_fill.Scalar_out", values(dtype, (4, 6)), mask, 3, Out((4, 6), dtype))
        names.append(f"masked_fill {dtype}")
        for other in (*FLOATS, *INTEGERS, torch.bool):
            out = Out((4, 6), torch.promote_types(dtype, other))
            condition = values(torch.bool, (4, 1), 5)
            builder.call("aten::where.self_out", condition, values(dtype, (4, 6)), values(other, (6,)), out)
            names.append(f"where {dtype} {other}")
    check(builder, names)


def test_activations() -> None:
    builder, names = ProgramBuilder(), []
    for dtype in FLOATS:
        x, out = values(dtype, (4, 6)), Out((4, 6), dtype)
        builder.call("aten::leaky_relu.out", x, 0.1, out)
        builder.call("aten::elu.out", x, 0.7, 1.3, 0.9, out)
        builder.call("aten::gelu.out", x, "none", out)
        builder.call("aten::gelu.out", x, "tanh", out)
        names += [f"{name} {dtype}" for name in ("leaky_relu", "elu", "gelu", "gelu by tanh")]
        if dtype in (torch.float32, torch.float64):  # ExecuTorch has logit for these only
            builder.call("aten::logit.out", x.sigmoid(), None, out)
            builder.call("aten::logit.out", x.sigmoid(), 1e-3, out)
            names += [f"{name} {dtype}" for name in ("logit", "logit with eps")]
    check(builder, names)


def test_memory_order_of_operands_may_differ() -> None:
    x = values(torch.float32, (2, 3, 4, 5)).to(memory_format=torch.channels_last)
    y = values(torch.float32, (2, 3, 4, 5), 1)
    builder = ProgramBuilder()
    builder.call("aten::add.out", x, y, 1, Out((2, 3, 4, 5), torch.float32, (0, 2, 3, 1)))
    builder.call("aten::mul.out", y, x, Out((2, 3, 4, 5), torch.float32))
    run = run_ours(builder)
    assert run.status == 0, run.log
    assert_same(run.outputs[0], x + y, "add")
    assert_same(run.outputs[1], y * x, "mul")


@pytest.mark.parametrize(
    ("operator", "arguments", "reason"),
    [
        ("fmod.Scalar_out", (torch.ones(3, dtype=torch.int8), 0, Out((3,), torch.int8)), "by zero"),
        ("div.out_mode", (torch.ones(3), torch.ones(3), "up", Out((3,), torch.float32)), "'up'"),
        ("mul.out", (torch.ones(3), torch.ones(4), Out((3,), torch.float32)), "broadcast"),
        ("mul.out", (torch.ones(3), torch.ones(3), Out((4,), torch.float32)), "does not fit"),
        ("mul.out", (torch.ones(3), torch.ones(3), Out((3,), torch.int8)), "float result"),
        ("exp.out", (torch.ones(3), Out((3,), torch.int8)), "float result"),
        ("mul.out", (torch.ones(3), 2, Out((3,), torch.float32)), "expected 'T'"),
    ],
)
def test_wrong_arguments_are_refused_with_a_reason(
    operator: str, arguments: tuple[Argument, ...], reason: str
) -> None:
    builder = ProgramBuilder()
    builder.call(f"aten::{operator}", *arguments)
    run = run_ours(builder)
    assert run.status == 5
    assert f"aten::{operator}" in run.log
    assert reason in run.log

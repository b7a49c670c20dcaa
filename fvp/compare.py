# SPDX-License-Identifier: Apache-2.0
"""Comparison of outputs: equal bit for bit, or the first place where they are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from report.record import Check

FLOAT_RTOL, FLOAT_ATOL = 1e-4, 1e-5
"""Allowed only for programs with the CPU operators of `inexact_operators`: their float arithmetic is
rounded in an order that each implementation chooses."""

_EXACT_OPERATORS = frozenset(
    "abs add bitwise_and bitwise_or bitwise_xor cat ceil clamp clone _clone_dim_order constant_pad_nd "
    "dequantize_per_tensor div embedding eq et_view expand_copy flip floor fmod full full_like gather ge gt "
    "hardtanh index index_select le logical_and logical_not logical_or lt masked_fill max maximum min "
    "minimum mul ne neg permute_copy quantize_per_tensor relu repeat round select_copy slice_copy sort "
    "split_with_sizes_copy sqrt squeeze_copy stack sub _to_dim_order_copy topk transpose_copy unsqueeze_copy "
    "view_copy where".split()
)
"""Operators with one right answer per element: data movement, selection, integer arithmetic and single
IEEE 754 operations."""


@dataclass(frozen=True)
class Difference:
    """Where two arrays of the same shape first differ, and how much they do."""

    index: tuple[int, ...]
    actual: float | int
    expected: float | int
    count: int
    size: int
    largest: float

    def __str__(self) -> str:
        return (
            f"{self.count} of {self.size} elements differ, first at {list(self.index)}: "
            f"{self.actual!r}, expected {self.expected!r}; largest difference {self.largest:.6g}"
        )


def first_difference(actual: np.ndarray, expected: np.ndarray) -> Difference | None:
    """None when both arrays are equal bit for bit (NaN equals the same NaN).

    Raises:
        ValueError: the arrays differ in shape or dtype.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise ValueError(f"{actual.dtype}{list(actual.shape)} against {expected.dtype}{list(expected.shape)}")
    bits = np.dtype(f"u{actual.dtype.itemsize}")
    unequal = np.ascontiguousarray(actual).view(bits) != np.ascontiguousarray(expected).view(bits)
    if not unequal.any():
        return None
    index = tuple(int(i) for i in np.argwhere(np.atleast_1d(unequal))[0])[: actual.ndim]
    largest = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    return Difference(
        index, actual[index].item(), expected[index].item(), int(unequal.sum()), actual.size, float(largest)
    )


def inexact_operators(operators: Iterable[str]) -> list[str]:
    """The kernel names among `operators` whose float results depend on the order of rounding."""
    return sorted({name for name in operators if _plain_name(name) not in _EXACT_OPERATORS})


def check_equal(
    name: str,
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    reference: str,
    inexact: list[str],
) -> Check:
    """Compare outputs pairwise. With `inexact` operators, floats may differ by `FLOAT_RTOL`, `FLOAT_ATOL`.

    Args:
        reference: what `expected` came from, for the check's text.
    """
    try:
        unequal = unequal_outputs(actual, expected, reference)
    except ValueError as error:
        return Check(name, "fail", str(error))
    for ours, theirs, text in unequal:
        if not (inexact and ours.dtype.kind == "f" and np.allclose(ours, theirs, FLOAT_RTOL, FLOAT_ATOL)):
            return Check(name, "fail", text)
    if not unequal:
        return exact(name, len(actual), reference)
    tolerance = f"rtol {FLOAT_RTOL}, atol {FLOAT_ATOL}"
    return Check(
        name, "pass", f"close ({tolerance}) to {reference}, not exact: float {', '.join(inexact)} on the CPU"
    )


def unequal_outputs(
    actual: Sequence[np.ndarray], expected: Sequence[np.ndarray], reference: str
) -> list[tuple[np.ndarray, np.ndarray, str]]:
    """The pairs that are not bit-equal, each with the text of its first difference.

    Raises:
        ValueError: the numbers of outputs, or a pair's shape or dtype, differ; its text says how.
    """
    if len(actual) != len(expected):
        raise ValueError(f"{len(actual)} outputs, {reference} has {len(expected)}")
    found = []
    for number, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        where = f"output {number} against {reference}"
        try:
            difference = first_difference(ours, theirs)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        if difference is not None:
            found.append((ours, theirs, f"{where}: {difference}"))
    return found


def exact(name: str, count: int, reference: str) -> Check:
    """The check that `count` outputs have passed with every bit equal."""
    return Check(name, "pass", f"exact: {count} output(s) bit-equal to {reference}")


def _plain_name(operator: str) -> str:
    """``aten::add.out`` -> ``add``."""
    return operator.rpartition("::")[2].partition(".")[0]

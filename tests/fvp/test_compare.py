# SPDX-License-Identifier: Apache-2.0
"""Comparison of outputs: bit equality, the first difference, and when a tolerance is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from fvp import compare


def test_equal_arrays_have_no_difference_even_with_nan_and_zero_signs() -> None:
    array = np.array([np.nan, 0.0, -0.0, np.inf], np.float32)
    assert compare.first_difference(array, array.copy()) is None
    assert compare.first_difference(np.float32([0.0]), np.float32([-0.0])) is not None


def test_the_first_difference_names_place_and_values() -> None:
    expected = np.arange(12, dtype=np.int8).reshape(3, 4)
    actual = expected.copy()
    actual[1, 2] += 1
    actual[2, 3] -= 5
    difference = compare.first_difference(actual, expected)
    assert difference is not None
    assert (difference.index, difference.actual, difference.expected) == ((1, 2), 7, 6)
    assert (difference.count, difference.size, difference.largest) == (2, 12, 5.0)


def test_scalars_compare() -> None:
    assert compare.first_difference(np.asarray(3, np.int8), np.asarray(4, np.int8)).index == ()


def test_a_wrong_shape_fails_the_check() -> None:
    check = compare.check_equal("output", [np.zeros((2, 3))], [np.zeros((3, 2))], "reference", [])
    assert check.result == "fail" and "[2, 3]" in check.detail


@pytest.mark.parametrize(("inexact", "result"), [([], "fail"), (["aten::_softmax.out"], "pass")])
def test_a_tolerance_needs_an_inexact_operator(inexact: list[str], result: str) -> None:
    expected = np.linspace(0, 1, 7, dtype=np.float32)
    actual = np.nextafter(expected, np.float32(2))
    check = compare.check_equal("output", [actual], [expected], "reference", inexact)
    assert check.result == result
    assert not check.detail.startswith("exact")


def test_integers_never_get_a_tolerance() -> None:
    ours, theirs = np.array([1], np.int8), np.array([2], np.int8)
    assert (
        compare.check_equal("output", [ours], [theirs], "reference", ["aten::_softmax.out"]).result == "fail"
    )


def test_which_operators_are_inexact() -> None:
    names = [
        "aten::add.out",
        "aten::_softmax.out",
        "quantized_decomposed::quantize_per_tensor.out",
        "aten::mm.out",
    ]
    assert compare.inexact_operators(names) == ["aten::_softmax.out", "aten::mm.out"]

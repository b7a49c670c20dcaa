# SPDX-License-Identifier: Apache-2.0
"""Damaged programs are refused with ExecuTorch's error code and a line that says what is wrong."""

from __future__ import annotations

import pytest
import torch
from core_damage import DAMAGES, damaged_bytes, headers_beyond_executorch
from core_host import CANNOT_LOAD, FAILED, case, executorch_errors, run


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_program_is_refused_and_explained(name: str) -> None:
    damage = DAMAGES[name]
    result = run(damage.pte(), case(damage.base).inputs)
    assert result.error == damage.code, result.stderr
    assert damage.says in result.stderr


@pytest.mark.parametrize("name", damaged_bytes())
def test_a_file_damaged_as_a_whole_is_refused(name: str) -> None:
    data, code = damaged_bytes()[name]
    result = run(data)
    assert (result.status, result.error) == (CANNOT_LOAD, code), result.stderr
    assert result.stderr.startswith("E program: ")


@pytest.mark.parametrize("name", headers_beyond_executorch())
def test_sizes_that_contradict_each_other_are_refused(name: str) -> None:
    data, says = headers_beyond_executorch()[name]
    result = run(data)
    assert (result.status, result.error) == (CANNOT_LOAD, 0x23), result.stderr
    assert says in result.stderr


def test_executorch_gives_the_same_codes() -> None:
    files = {name: damage.pte() for name, damage in DAMAGES.items()}
    expected = {name: d.executorch[0] if d.executorch else d.code for name, d in DAMAGES.items()}
    for name, (data, code) in damaged_bytes().items():
        files[name], expected[name] = data, code
    defined = {name: code for name, code in expected.items() if code is not None}
    assert len(defined) > 30
    assert executorch_errors({name: files[name] for name in defined}) == defined


def test_inputs_of_another_number_or_size_are_refused() -> None:
    a, b = case("add").inputs
    for inputs, code, says in (
        ((a,), 0x12, "1 input files, the method takes 2"),
        ((a, torch.ones(2, 4)), 0x12, "input 1: got 32 bytes, the method takes 24"),
        ((a, b[:1]), 0x12, "input 1: got 12 bytes, the method takes 24"),
    ):
        result = run(case("add").pte, inputs, shaped=False)
        assert (result.status, result.error) == (FAILED, code)
        assert says in result.stderr


def test_an_input_of_another_shape_is_refused_as_executorch_does() -> None:
    a, _ = case("add").inputs
    for shape, says in (
        ((2, 4), "dimension 1 of a static tensor is 3, not 4"),
        ((6,), "cannot become rank 1"),
    ):
        result = run(case("add").pte, (a, torch.ones(shape)))
        assert (result.status, result.error) == (FAILED, 0x10)
        assert says in result.stderr


def test_an_unknown_method_is_named() -> None:
    result = run(case("add").pte, case("add").inputs, "--method", "backward")
    assert (result.status, result.error) == (CANNOT_LOAD, 0x12)
    assert "no method backward" in result.stderr

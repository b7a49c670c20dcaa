# SPDX-License-Identifier: Apache-2.0
"""Every bundled example compiles for all eleven configurations and its delegates are bit-exact on each."""

from __future__ import annotations

from pathlib import Path

import pytest

from aot.models import example_names
from npu.config import CONFIGS
from validation.examples_matrix import cases

ON_THE_CPU: dict[str, dict[str, set[str]]] = {}
"""Operators that ExecuTorch's partitioner leaves on the CPU, by example and NPU family; absent: none."""


@pytest.mark.parametrize("model", example_names())
def test_an_example_is_exact_on_every_configuration(model: str, tmp_path: Path) -> None:
    found = list(cases(model, tmp_path))
    assert [case.target for case in found] == list(CONFIGS)
    assert {case.target: case.differences for case in found if case.differences} == {}
    for case in found:
        family = case.target.split("-")[1]
        assert case.delegates >= 1
        assert set(case.cpu_ops) == ON_THE_CPU.get(model, {}).get(family, set()), case.target

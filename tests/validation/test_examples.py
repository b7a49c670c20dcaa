# SPDX-License-Identifier: Apache-2.0
"""Every bundled example compiles for every configuration and its delegates are bit-exact on each.

The three examples that take minutes are run here on one configuration; the script examples_matrix.py, whose
table is in docs/validation.md, runs all on all eleven.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from npu.config import CONFIGS
from validation.examples_matrix import FOR_ETHOS_U, cases

LARGE = {
    "mobilenet_v1_025": "ethos-u65-512",
    "mobilenet_v2": "ethos-u85-256",
    "transformer_encoder": "ethos-u55-128",
}

ON_THE_CPU: dict[str, dict[str, set[str]]] = {}
"""Operators that ExecuTorch's partitioner leaves on the CPU, by example and NPU family; absent: none."""


@pytest.mark.parametrize("model", FOR_ETHOS_U)
def test_an_example_is_exact_on_every_configuration(model: str, tmp_path: Path) -> None:
    targets = (LARGE[model],) if model in LARGE else tuple(CONFIGS)
    found = list(cases(model, tmp_path, targets))
    assert [case.target for case in found] == list(targets)
    assert {case.target: case.differences for case in found if case.differences} == {}
    for case in found:
        family = case.target.split("-")[1]
        assert case.delegates >= 1
        assert set(case.cpu_ops) == ON_THE_CPU.get(model, {}).get(family, set()), case.target

# SPDX-License-Identifier: Apache-2.0
"""Bundled examples compile for every configuration and their delegates are bit-exact on each.

Large ones are run here on some configurations, and the transformer, whose export alone takes minutes, not at
all: the script examples_matrix.py, whose table is in docs/validation.md, runs all on all eleven.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from npu.config import CONFIGS
from validation.examples_matrix import FOR_ETHOS_U, cases

ONE_PER_FAMILY = ("ethos-u55-64", "ethos-u65-256", "ethos-u85-1024")
TARGETS = {
    "deep_autoencoder": ONE_PER_FAMILY,
    "mobilenet_v1_025": ("ethos-u65-512",),
    "mobilenet_v2": ("ethos-u85-256",),
    "resnet8": ONE_PER_FAMILY,
    "unet": ONE_PER_FAMILY,
}
MODELS = [name for name in FOR_ETHOS_U if name != "transformer_encoder"]

ON_THE_CPU: dict[str, dict[str, set[str]]] = {}
"""Operators that ExecuTorch's partitioner leaves on the CPU, by example and NPU family; absent: none."""


@pytest.mark.parametrize("model", MODELS)
def test_an_example_is_exact(model: str, tmp_path: Path) -> None:
    targets = TARGETS.get(model, tuple(CONFIGS))
    found = list(cases(model, tmp_path, targets))
    assert [case.target for case in found] == list(targets)
    assert {case.target: case.differences for case in found if case.differences} == {}
    for case in found:
        family = case.target.split("-")[1]
        assert case.delegates >= 1
        assert set(case.cpu_ops) == ON_THE_CPU.get(model, {}).get(family, set()), case.target

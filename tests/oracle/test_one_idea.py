# SPDX-License-Identifier: Apache-2.0
"""Every one-idea model: the NPU model's outputs equal the TOSA reference model's, bit for bit.

The tests of a model share its lowering, so run them in one process: `pytest -n 2 --dist loadgroup`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from npu.container import parse_velabin
from oracle import reference, streams
from oracle.cache import LoweredModels
from oracle.compare import differences
from oracle.one_idea import MODELS

NPUS = (
    "ethos-u55-32",
    "ethos-u55-128",
    "ethos-u55-256",
    "ethos-u65-512",
    "ethos-u85-128",
    "ethos-u85-256",
    "ethos-u85-512",
    "ethos-u85-2048",
)
SEEDS = (1, 2)


def _cases(absent: bool) -> Iterator[object]:
    for name, model in MODELS.items():
        for npu in NPUS:
            if (streams.family(npu) in model.absent) == absent:
                yield pytest.param(name, npu, marks=pytest.mark.xdist_group(name), id=f"{name}-{npu}")


@pytest.mark.parametrize(("name", "npu"), _cases(absent=False))
def test_equals_reference_model(name: str, npu: str, lowered_models: LoweredModels) -> None:
    graphs = lowered_models.delegates(name, npu)
    assert graphs, f"nothing of {name} is delegated to {npu}: declare it in the table"
    for graph in graphs:
        binary = parse_velabin(streams.compile_tosa(graph, npu, flags=MODELS[name].flags))
        for seed in SEEDS:
            inputs = reference.random_inputs(graph, seed, MODELS[name].index_limit)
            assert differences(binary, npu, graph, inputs) == []


@pytest.mark.parametrize(("name", "npu"), _cases(absent=True))
def test_not_delegated_as_declared(name: str, npu: str, lowered_models: LoweredModels) -> None:
    reason = MODELS[name].absent[streams.family(npu)]
    assert lowered_models.delegates(name, npu) == (), f"{npu} takes it now, though: {reason}"

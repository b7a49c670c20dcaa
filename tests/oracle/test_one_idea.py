# SPDX-License-Identifier: Apache-2.0
"""Every one-idea model: the NPU model's outputs equal the TOSA reference model's, bit for bit.

The tests of a model share its lowering, so run them in one process: `pytest -n 2 --dist loadgroup`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from npu.config import npu_config
from npu.container import parse_velabin
from npu.errors import NpuError
from npu.machine import execute
from oracle import reference, streams
from oracle.cache import LoweredModels
from oracle.compare import differences
from oracle.one_idea import MODELS, Model

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


def _expectation(model: Model, npu: str) -> str:
    if streams.family(npu) in model.absent:
        return "absent"
    return "wrong" if npu in model.wrong else "exact"


def _cases(expectation: str) -> Iterator[object]:
    for name, model in MODELS.items():
        for npu in NPUS:
            if _expectation(model, npu) == expectation:
                yield pytest.param(name, npu, marks=pytest.mark.xdist_group(name), id=f"{name}-{npu}")


@pytest.mark.parametrize(("name", "npu"), _cases("exact"))
def test_equals_reference_model(name: str, npu: str, lowered_models: LoweredModels) -> None:
    graphs = lowered_models.delegates(name, npu)
    assert graphs, f"nothing of {name} is delegated to {npu}: declare it in the table"
    for graph in graphs:
        binary = parse_velabin(streams.compile_tosa(graph, npu, flags=MODELS[name].flags))
        for seed in SEEDS:
            inputs = reference.random_inputs(graph, seed, MODELS[name].index_limit)
            assert differences(binary, npu, graph, inputs) == []


@pytest.mark.parametrize(("name", "npu"), _cases("wrong"))
def test_wrong_stream_is_refused(name: str, npu: str, lowered_models: LoweredModels) -> None:
    (graph,) = lowered_models.delegates(name, npu)
    binary = parse_velabin(streams.compile_tosa(graph, npu))
    with pytest.raises(NpuError):
        execute(binary, npu_config(npu), reference.random_inputs(graph, SEEDS[0]))


@pytest.mark.parametrize(("name", "npu"), _cases("absent"))
def test_not_delegated_as_declared(name: str, npu: str, lowered_models: LoweredModels) -> None:
    reason = MODELS[name].absent[streams.family(npu)]
    assert lowered_models.delegates(name, npu) == (), f"{npu} takes it now, though: {reason}"

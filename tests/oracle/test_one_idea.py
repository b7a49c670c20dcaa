# SPDX-License-Identifier: Apache-2.0
"""Every one-idea model: the NPU model's outputs equal the TOSA reference model's, bit for bit.

One test takes one model through all NPUs that share its TOSA graph, so that nothing is lowered twice.
"""

from __future__ import annotations

import pytest

from npu.container import parse_velabin
from oracle import reference, streams
from oracle.cache import LoweredModels
from oracle.compare import differences
from oracle.one_idea import MODELS

NPUS = {
    "u5x": ("ethos-u55-32", "ethos-u55-128", "ethos-u55-256", "ethos-u65-512"),
    "u85": ("ethos-u85-128", "ethos-u85-256", "ethos-u85-512", "ethos-u85-2048"),
}
SEEDS = (1, 2)

_CASES = [(name, family) for name in MODELS for family in NPUS]
_ABSENT = [(name, family) for name, family in _CASES if family in MODELS[name].absent]
_PRESENT = [case for case in _CASES if case not in _ABSENT]


@pytest.mark.parametrize(("name", "family"), _PRESENT)
def test_equals_reference_model(name: str, family: str, lowered_models: LoweredModels) -> None:
    graphs = lowered_models.delegates(name, NPUS[family][0])
    assert graphs, f"nothing of {name} is delegated to {family}: declare it in the table"
    found = {
        (npu, n): _differences(name, npu, graph) for npu in NPUS[family] for n, graph in enumerate(graphs)
    }
    assert {where: lines for where, lines in found.items() if lines} == {}


def _differences(name: str, npu: str, graph: bytes) -> list[str]:
    model = MODELS[name]
    binary = parse_velabin(streams.compile_tosa(graph, npu, flags=model.flags))
    inputs = [reference.random_inputs(graph, seed, model.index_limit) for seed in SEEDS]
    return [line for arrays in inputs for line in differences(binary, npu, graph, arrays)]


@pytest.mark.parametrize(("name", "family"), _ABSENT)
def test_not_delegated_as_declared(name: str, family: str, lowered_models: LoweredModels) -> None:
    reason = MODELS[name].absent[family]
    assert lowered_models.delegates(name, NPUS[family][0]) == (), f"{family} takes it now, though: {reason}"

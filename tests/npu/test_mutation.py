# SPDX-License-Identifier: Apache-2.0
"""Break the NPU model on purpose: the golden comparison must notice, or it proves nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import golden
import numpy as np
import pytest

import npu.ops.functions
import npu.scaling
import npu.weights.order
from npu.config import npu_config
from npu.container import parse_velabin
from npu.isa import Rounding
from npu.machine import execute


@pytest.fixture(autouse=True)
def fresh_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Decoded weights are cached in memory and on disk: nothing may survive from or into another test."""
    monkeypatch.setenv("ARMDEPLOY_CACHE", "off")
    _clear_caches()
    yield
    monkeypatch.undo()
    _clear_caches()


def _clear_caches() -> None:
    npu.weights.clear_memory()
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "npu":
            for value in vars(module).values():
                getattr(value, "cache_clear", lambda: None)()


def is_exact(name: str) -> bool:
    case = golden.load(name)
    outputs = execute(parse_velabin(case.container), npu_config(case.npu), case.inputs)
    return all(np.array_equal(a.reshape(b.shape), b) for a, b in zip(outputs, case.outputs, strict=True))


def _rounding_as(rule: Rounding, monkeypatch: pytest.MonkeyPatch) -> None:
    original = npu.scaling.rounding_terms
    monkeypatch.setattr(
        npu.scaling, "rounding_terms", lambda shift, _, double=0: original(shift, rule, double)
    )


def _double_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    _rounding_as(Rounding.DOUBLE_SYMMETRIC, monkeypatch)


def _truncation(monkeypatch: pytest.MonkeyPatch) -> None:
    _rounding_as(Rounding.TRUNCATE_TO_LOWER, monkeypatch)


def _no_stride_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    original = npu.weights.order._sub_kernels_by_columns
    monkeypatch.setattr(
        npu.weights.order,
        "_sub_kernels_by_columns",
        lambda layout: original(replace(layout, stride_y=1, stride_x=1)),
    )


def _table_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    original = npu.ops.functions.lookup
    monkeypatch.setattr(
        npu.ops.functions,
        "lookup",
        lambda values, table, output: original(values, np.roll(table, 1, axis=0), output),
    )


def _bias_shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    original = npu.scaling.ChannelScales.with_bias
    monkeypatch.setattr(
        npu.scaling.ChannelScales, "with_bias", lambda scales, extra: original(scales, extra + 64)
    )


MUTATIONS = [
    (_double_rounding, "separable_block", golden.NPUS),
    (_truncation, "separable_block", golden.NPUS),
    (_truncation, "add_broadcast_channel", golden.NPUS),
    (_no_stride_phases, "conv3x3_stride2_shallow", ("ethos-u85-256",)),
    (_table_off_by_one, "sigmoid", golden.NPUS),
    (_bias_shifted, "conv3x3_stride2_shallow", golden.NPUS),
]


@pytest.mark.parametrize(
    ("mutate", "name"),
    [
        pytest.param(mutate, f"{model}__{npu}", id=f"{mutate.__name__[1:]}-{model}-{npu}")
        for mutate, model, npus in MUTATIONS
        for npu in npus
    ],
)
def test_mutation_is_noticed(
    mutate: Callable[[pytest.MonkeyPatch], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_exact(name)
    _clear_caches()
    mutate(monkeypatch)
    assert not is_exact(name)

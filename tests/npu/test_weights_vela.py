# SPDX-License-Identifier: Apache-2.0
"""Weights and scales out of Vela's command streams equal those of the graph that Vela compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from one_layer import OneLayer, compile_layer

from npu import machine
from npu.config import CONFIGS, npu_config
from npu.execution import Execution
from npu.memory import ArrayMemory
from npu.operation import Operation
from npu.ops import weights as op_weights
from npu.scaling import ChannelScales
from npu.weights import Traversal, WeightFormat, WeightLayout, decode_weights

_SCRATCH = 4 << 20


@pytest.fixture(autouse=True)
def _no_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMDEPLOY_CACHE", "off")


LAYERS = {
    "conv3x3": OneLayer(),
    "conv3x3_rgb_stride2": OneLayer(ifm_depth=3, ofm_depth=20, stride=(2, 2)),
    "conv3x3_deep": OneLayer(ifm_depth=72, ofm_depth=40, size=(8, 8)),
    "conv3x3_one_channel_out": OneLayer(ifm_depth=4, ofm_depth=1),
    "conv3x3_mostly_zero": OneLayer(ifm_depth=40, ofm_depth=33, zeros=0.9),
    "conv5x5_stride2": OneLayer(ifm_depth=12, ofm_depth=20, kernel=(5, 5), stride=(2, 2)),
    "conv5x5_dilated": OneLayer(ifm_depth=12, kernel=(5, 5), dilation=(2, 2)),
    "conv7x1_dilated2x1": OneLayer(ifm_depth=20, ofm_depth=33, kernel=(7, 1), dilation=(2, 1)),
    "conv11x11_stride3": OneLayer(ifm_depth=5, ofm_depth=9, kernel=(11, 11), stride=(3, 3)),
    "conv1x1": OneLayer(ifm_depth=100, ofm_depth=30, kernel=(1, 1), size=(8, 8)),
    "conv1x1_few_values": OneLayer(ifm_depth=160, ofm_depth=200, kernel=(1, 1), distinct=12, size=(4, 4)),
    "conv1x1_four_values": OneLayer(ifm_depth=256, ofm_depth=24, kernel=(1, 1), distinct=4),
    "fully_connected": OneLayer(ifm_depth=300, ofm_depth=50, kernel=(1, 1), size=(1, 1)),
    "conv3x3_sparse": OneLayer(ifm_depth=64, ofm_depth=32, sparse=True, size=(8, 8)),
    "conv1x1_sparse": OneLayer(ifm_depth=256, ofm_depth=64, kernel=(1, 1), sparse=True, distinct=10),
    "depthwise3x3": OneLayer(ifm_depth=24, depthwise=True),
    "depthwise5x5_stride2": OneLayer(ifm_depth=40, kernel=(5, 5), stride=(2, 2), depthwise=True),
    "conv3x3_int16": OneLayer(ifm_depth=20, ifm_bits=16),
    "conv3x3_int16_shallow": OneLayer(ifm_depth=4, ifm_bits=16),
    "conv1x1_int16_sparse": OneLayer(ifm_depth=128, kernel=(1, 1), ifm_bits=16, sparse=True),
    "fully_connected_int16": OneLayer(ifm_depth=96, ofm_depth=40, kernel=(1, 1), size=(1, 1), ifm_bits=16),
    "depthwise5x4_int16": OneLayer(ifm_depth=40, kernel=(5, 4), ifm_bits=16, depthwise=True),
}


@pytest.mark.parametrize("npu", CONFIGS)
@pytest.mark.parametrize("name", LAYERS)
def test_decodes_what_vela_encoded(name: str, npu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = LAYERS[name]
    fetched = fetch_all(layer, npu, monkeypatch)
    np.testing.assert_array_equal(np.concatenate([part.weights for part in fetched]), layer.weights())
    _compare_scales([part.scales for part in fetched], layer)


@pytest.mark.parametrize("npu", [name for name in CONFIGS if name.startswith("ethos-u85")])
@pytest.mark.parametrize("name", ["conv3x3", "conv1x1", "conv1x1_few_values", "conv1x1_sparse"])
def test_decodes_the_standard_format_where_vela_would_take_the_fast(
    name: str, npu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = LAYERS[name]
    fetched = fetch_all(layer, npu, monkeypatch, "--disable-fwd")
    assert {part.layout.weight_format for part in fetched} == {WeightFormat.STANDARD}
    np.testing.assert_array_equal(np.concatenate([part.weights for part in fetched]), layer.weights())


@pytest.mark.parametrize(
    ("name", "npu", "traversal", "fast_form"),
    [
        ("conv3x3", "ethos-u85-256", Traversal.PART_KERNEL, "raw"),
        ("conv3x3_sparse", "ethos-u85-128", Traversal.PART_KERNEL, "raw"),
        ("conv1x1_sparse", "ethos-u85-512", Traversal.DEPTH_FIRST, "raw"),
        ("conv1x1_few_values", "ethos-u85-2048", Traversal.DEPTH_FIRST, "table"),
        ("conv1x1_four_values", "ethos-u85-128", Traversal.DEPTH_FIRST, "small table"),
        ("conv3x3_rgb_stride2", "ethos-u85-1024", Traversal.PART_KERNEL, None),
        ("depthwise3x3", "ethos-u85-512", Traversal.DEPTHWISE, None),
        ("conv1x1", "ethos-u55-128", Traversal.DEPTH_FIRST, None),
        ("conv3x3", "ethos-u65-512", Traversal.PART_KERNEL, None),
    ],
)
def test_the_layers_meet_the_formats_they_are_here_for(
    name: str, npu: str, traversal: Traversal, fast_form: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = fetch_all(LAYERS[name], npu, monkeypatch)
    assert {part.layout.traversal for part in fetched} == {traversal}
    assert {part.layout.sparse for part in fetched} == {"sparse" in name and "u85" in npu}
    assert {part.fast_form for part in fetched} == {fast_form}


@dataclass(frozen=True)
class Fetched:
    """Weights and scales of one operation."""

    layout: WeightLayout
    streams: tuple[bytes, ...]
    weights: np.ndarray
    scales: ChannelScales

    @property
    def fast_form(self) -> str | None:
        """Form of a fast stream, None for standard streams."""
        if self.layout.weight_format is not WeightFormat.FAST:
            return None
        return {0: "table", 1: "raw", 2: "small table"}[self.streams[0][0]]


def fetch_all(layer: OneLayer, npu: str, monkeypatch: pytest.MonkeyPatch, *flags: str) -> list[Fetched]:
    """Run Vela's stream of the layer with the arithmetic taken out: each distinct fetch of weights, in order.

    A layer that is cut into stripes fetches the same weights for each of them.
    """
    found: dict[tuple[bytes, ...], Fetched] = {}

    def fetch(run: Execution, op: Operation) -> int:
        scales = op_weights.load_scales(run, op)
        layout, streams = op_weights.load_weights(run, op)
        found.setdefault(streams, Fetched(layout, streams, decode_weights(layout, streams), scales))
        return 0

    commands, constants = compile_layer(layer, npu, flags)
    scratch = {region: np.zeros(_SCRATCH, np.uint8) for region in (1, 2)}
    memory = ArrayMemory({0: np.frombuffer(constants, np.uint8), **scratch})
    with monkeypatch.context() as patch:
        patch.setattr(op_weights, "_prepare", lambda layout, streams, largest: (layout, streams))
        patch.setattr(machine, "EXECUTE", {**machine.EXECUTE, "OP_CONV": fetch, "OP_DEPTHWISE": fetch})
        machine.Npu(npu_config(npu)).run(commands, memory)
    return list(found.values())


def _compare_scales(parts: list[ChannelScales], layer: OneLayer) -> None:
    """Vela takes powers of two out of a multiplier, so compare the products with a common shift."""
    multiplier, shift = layer.scales()
    np.testing.assert_array_equal(np.concatenate([part.bias for part in parts]), layer.biases())
    taken = shift - np.concatenate([part.shift for part in parts])
    np.testing.assert_array_equal(np.concatenate([part.multiplier for part in parts]) << taken, multiplier)

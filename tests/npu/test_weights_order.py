# SPDX-License-Identifier: Apache-2.0
"""Weight orders: U55 and U65 against Arm's encoder, all of them for covering the tensor exactly once.

For the U85 no encoder can be called on its own; test_weights_vela.py compares its order with Vela's streams.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ethosu import mlw_codec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from npu.config import CONFIGS, Family, npu_config
from npu.errors import NotModelled, WeightStreamError
from npu.weights import PADDING, Traversal, WeightFormat, WeightLayout, decode_weights, weight_order

_MICROBLOCKS = ((1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 4))
_LARGEST = 40_000


@pytest.fixture(autouse=True)
def _no_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMDEPLOY_CACHE", "off")


@st.composite
def layouts(draw: st.DrawFn, families: tuple[Family, ...] = tuple(Family)) -> WeightLayout:
    """Layouts that a compiler could ask for."""
    config = draw(st.sampled_from([config for config in CONFIGS.values() if config.family in families]))
    traversal = draw(st.sampled_from(Traversal))
    special = config.family is Family.U85 and traversal is not Traversal.DEPTHWISE
    microblock = draw(st.sampled_from(_MICROBLOCKS)) if config.family is Family.U85 else (1, 1)
    ublock = config.ofm_ublock_depth(microblock)
    assume(ublock >= 4 * config.cores or config.family is not Family.U85)
    cores = config.cores if config.family is Family.U65 else 1
    layout = WeightLayout(
        config=config,
        traversal=traversal,
        weight_format=draw(st.sampled_from(WeightFormat)) if special else WeightFormat.STANDARD,
        sparse=special and draw(st.booleans()),
        ifm_bits=draw(st.sampled_from([8, 16])),
        ofm_depth=draw(st.integers(1, 80)),
        ifm_depth=1 if traversal is Traversal.DEPTHWISE else draw(st.integers(1, 150)),
        kernel_h=draw(st.integers(1, 11)),
        kernel_w=draw(st.integers(1, 11)),
        stride_y=draw(st.integers(1, 3)),
        stride_x=draw(st.integers(1, 3)),
        dilation_y=draw(st.integers(1, 2)),
        dilation_x=draw(st.integers(1, 2)),
        ofm_block_depth=ublock * cores * draw(st.integers(1, 4)),
        microblock=microblock,
    )
    assume(layout.size <= _LARGEST)
    return layout


@settings(max_examples=150, deadline=None)
@given(layouts())
def test_every_weight_has_exactly_one_position(layout: WeightLayout) -> None:
    destinations = np.concatenate(weight_order(layout))
    real = np.sort(destinations[destinations != PADDING])
    np.testing.assert_array_equal(real, np.arange(layout.size))


@settings(max_examples=100, deadline=None)
@given(layouts((Family.U55,)), st.integers(0, 1 << 32))
def test_u55_order_is_that_of_the_encoder(layout: WeightLayout, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(-128, 128, layout.shape).astype(np.int16)
    np.testing.assert_array_equal(decode_weights(layout, [_encode(layout, weights)]), weights)


@settings(max_examples=40, deadline=None)
@given(layouts((Family.U65,)), st.integers(0, 1 << 32))
def test_u65_cores_take_turns_at_channels(layout: WeightLayout, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(-128, 128, layout.shape).astype(np.int16)
    cores = layout.config.cores
    part = replace(layout, ofm_block_depth=layout.ofm_block_depth // cores)
    streams = [_encode(part, weights[core::cores]) for core in range(cores) if core < len(weights)]
    streams += [b""] * (cores - len(streams))
    np.testing.assert_array_equal(decode_weights(layout, streams), weights)


def _encode(layout: WeightLayout, weights: np.ndarray) -> bytes:
    stream, _ = mlw_codec.reorder_encode(
        8,
        layout.ofm_ublock_depth,
        np.ascontiguousarray(weights),
        layout.ofm_block_depth,
        layout.traversal is Traversal.DEPTHWISE,
        layout.traversal is Traversal.PART_KERNEL,
        layout.ifm_bits,
        8 // layout.dilation_y,
        8 // layout.dilation_x,
    )
    return bytes(stream)


_CONV = WeightLayout(
    config=npu_config("ethos-u85-256"),
    traversal=Traversal.PART_KERNEL,
    weight_format=WeightFormat.STANDARD,
    sparse=False,
    ifm_bits=8,
    ofm_depth=16,
    ifm_depth=16,
    kernel_h=1,
    kernel_w=1,
    stride_y=1,
    stride_x=1,
    dilation_y=1,
    dilation_x=1,
    ofm_block_depth=16,
    microblock=(1, 4),
)


def _encoded(layout: WeightLayout, value: int = 1, padding: int = 0) -> list[bytes]:
    """Streams in which all weights have one value."""
    orders = weight_order(layout)
    return [
        bytes(mlw_codec.encode([padding if at == PADDING else value for at in order])) for order in orders
    ]


def test_weights_are_placed_and_read_only() -> None:
    weights = decode_weights(_CONV, _encoded(_CONV, 5))
    assert weights.shape == (16, 1, 1, 16)
    assert weights.dtype == np.int16
    assert (weights == 5).all()
    with pytest.raises(ValueError, match="read-only"):
        weights[0] = 0


def test_a_weight_outside_the_tensor_is_an_error() -> None:
    with pytest.raises(WeightStreamError, match="beyond the weights"):
        decode_weights(_CONV, _encoded(_CONV, 6, padding=1))


@pytest.mark.parametrize("streams", [[], [b"\xff" * 16, b"\xff" * 16], [b""], [b"\xff" * 16]])
def test_streams_that_do_not_fit_the_layout(streams: list[bytes]) -> None:
    with pytest.raises(WeightStreamError):
        decode_weights(_CONV, streams)


def test_an_error_names_the_core() -> None:
    layout = replace(_CONV, config=npu_config("ethos-u85-512"), ofm_depth=32)
    first, _ = _encoded(layout)
    with pytest.raises(WeightStreamError, match="core 1: weight stream ends"):
        decode_weights(layout, [first, first[:16]])


@pytest.mark.parametrize(
    "change",
    [
        {"config": npu_config("ethos-u55-128"), "sparse": True},
        {"config": npu_config("ethos-u65-512"), "weight_format": WeightFormat.FAST},
        {"config": npu_config("ethos-u65-512"), "ofm_block_depth": 1},
        {"traversal": Traversal.DEPTHWISE, "ifm_depth": 1, "weight_format": WeightFormat.FAST},
        {"config": npu_config("ethos-u85-128"), "microblock": (4, 4)},
    ],
)
def test_what_no_compiler_emits_is_refused(change: dict) -> None:
    with pytest.raises(NotModelled):
        decode_weights(replace(_CONV, **change), [b"\xff" * 16])

# SPDX-License-Identifier: Apache-2.0
"""Scale streams: U55 and U65 against Vela's Python encoder, the others field by field.

test_weights_vela.py compares whole streams, 48-bit accumulators included, with the graph Vela compiled.
"""

from __future__ import annotations

import numpy as np
import pytest
from ethosu.vela.weight_compressor import encode_bias
from hypothesis import given
from hypothesis import strategies as st

from npu.config import npu_config
from npu.errors import WeightStreamError
from npu.weights import decode_scales

_ENTRY = st.tuples(st.integers(-(1 << 39), (1 << 39) - 1), st.integers(0, (1 << 32) - 1), st.integers(0, 63))


def _stream(entries: list[tuple[int, int, int]]) -> bytes:
    data = b"".join(bytes(encode_bias(np.int64(bias), scale, shift)) for bias, scale, shift in entries)
    return data + bytes(-len(data) % 16)


@given(st.lists(_ENTRY, min_size=1, max_size=40), st.sampled_from([32, 40]))
def test_u55_scales_are_what_vela_encodes(entries: list[tuple[int, int, int]], acc_bits: int) -> None:
    scales = decode_scales(npu_config("ethos-u55-256"), len(entries), acc_bits, [_stream(entries)])
    assert list(zip(scales.bias, scales.scale, scales.shift, strict=True)) == entries


@given(st.lists(_ENTRY, min_size=1, max_size=41))
def test_u65_cores_have_even_and_odd_channels(entries: list[tuple[int, int, int]]) -> None:
    streams = [_stream(entries[0::2]), _stream(entries[1::2])]
    scales = decode_scales(npu_config("ethos-u65-512"), len(entries), 32, streams)
    assert list(zip(scales.bias, scales.scale, scales.shift, strict=True)) == entries


@pytest.mark.parametrize(
    ("acc_bits", "entry", "expected"),
    [
        (32, "00000080 ffffff7f 3f 00", (-(1 << 31), (1 << 31) - 1, 63)),
        (32, "ffffff7f 01000000 00 00", ((1 << 31) - 1, 1, 0)),
        (48, "000000000080 ff7f 2a 00", (-(1 << 47), (1 << 15) - 1, 42)),
        (48, "ffffffffff7f 0100 00 00", ((1 << 47) - 1, 1, 0)),
    ],
)
def test_u85_entries(acc_bits: int, entry: str, expected: tuple[int, int, int]) -> None:
    stream = bytes.fromhex(entry) * 2 + bytes(12)
    scales = decode_scales(npu_config("ethos-u85-512"), 2, acc_bits, [stream])
    for values, value in zip((scales.bias, scales.scale, scales.shift), expected, strict=True):
        assert values.tolist() == [value, value]


@pytest.mark.parametrize(
    ("npu", "channels", "acc_bits", "streams", "message"),
    [
        ("ethos-u85-256", 2, 32, [bytes(16)], "2 channels take 20"),
        ("ethos-u65-512", 3, 32, [bytes(32), b""], "1 channels take 10"),
        ("ethos-u65-512", 1, 32, [bytes(32)], "1 scale streams"),
        ("ethos-u85-512", 1, 32, [bytes(32), bytes(32)], "2 scale streams"),
        ("ethos-u85-256", 1, 40, [bytes(16)], "no 40-bit"),
        ("ethos-u55-128", 1, 48, [bytes(16)], "no 48-bit"),
        ("ethos-u55-128", 1, 32, [bytes(9) + b"\x40" + bytes(6)], "reserved bits"),
        ("ethos-u85-256", 1, 32, [bytes(7) + b"\x80" + bytes(8)], "reserved bits"),
        ("ethos-u85-256", 2, 48, [bytes(19) + b"\x01" + bytes(12)], "channel 1"),
    ],
)
def test_malformed_streams(
    npu: str, channels: int, acc_bits: int, streams: list[bytes], message: str
) -> None:
    with pytest.raises(WeightStreamError, match=message):
        decode_scales(npu_config(npu), channels, acc_bits, streams)

# SPDX-License-Identifier: Apache-2.0
"""The fast weight stream: forms and errors. test_weights_vela.py decodes Vela's."""

from __future__ import annotations

import numpy as np
import pytest

from npu.errors import WeightStreamError
from npu.weights.fast import decode_fast

_RAW, _SMALL = 1, 2


def _header(flags: int = 0, zero_adjust: int = 0, table: tuple[int, ...] = ()) -> bytes:
    value = flags | (zero_adjust & 0xFF) << 104
    for entry, weight in enumerate(table):
        value |= (abs(weight) << 1 | (weight < 0)) << (112 + 9 * entry)
    return value.to_bytes(32, "little")


def test_raw_codes_are_twos_complement_less_the_zero_adjust() -> None:
    codes = np.arange(-128, 128, dtype=np.int8)
    decoded = decode_fast(_header(_RAW, zero_adjust=-5) + codes.tobytes(), 256)
    assert decoded.tolist() == list(range(-123, 133))


def test_four_bit_codes_index_the_table_low_nibble_first() -> None:
    table = (0, 1, -1, 255, -255, *range(10, 21))
    decoded = decode_fast(_header(table=table) + bytes([0x10, 0x32, 0xF4]).ljust(32, b"\0"), 5)
    assert decoded.tolist() == [0, 1, -1, 255, -255]


def test_two_bit_codes_index_the_first_four_entries() -> None:
    stream = _header(_SMALL, table=(7, -8, 9, -10)) + bytes([0b11_10_01_00, 0b01]).ljust(32, b"\0")
    assert decode_fast(stream, 5).tolist() == [7, -8, 9, -10, -8]


@pytest.mark.parametrize(
    ("stream", "count", "message"),
    [
        (b"", 1, "ends in its header"),
        (_header()[:31], 1, "ends in its header"),
        (_header(_RAW) + bytes(32), 33, "33 weights take 65"),
        (_header() + bytes(32), 65, "65 weights take 65"),
        (_header(_RAW) + bytes(64), 32, "has 96 bytes"),
        (_header(_RAW | _SMALL) + bytes(32), 32, "reserved bits"),
        (_header(4) + bytes(32), 32, "reserved bits"),
    ],
)
def test_malformed_streams(stream: bytes, count: int, message: str) -> None:
    with pytest.raises(WeightStreamError, match=message):
        decode_fast(stream, count)

# SPDX-License-Identifier: Apache-2.0
"""The fast weight stream of the Ethos-U85: fixed-width codes after a 256-bit header."""

from __future__ import annotations

import numpy as np

from npu.errors import WeightStreamError

_UNIT = 32  # bytes; the header has this size and the codes are padded to a multiple of it
_TABLE_BIT = 112
_ENTRY_BITS = 9


def decode_fast(data: bytes, count: int) -> np.ndarray:
    """Decode `count` weights of a fast stream; the stream itself does not say how many it holds.

    Returns:
        int16[count] in stream order.

    Raises:
        WeightStreamError: the stream's length is not what `count` weights take, or its header is malformed.
    """
    if len(data) < _UNIT:
        raise WeightStreamError("fast weight stream ends in its header", offset=0)
    header = int.from_bytes(data[:_UNIT], "little")
    raw, small = bool(header & 1), bool(header >> 1 & 1)
    if (raw and small) or header >> 2 & (1 << 102) - 1:
        raise WeightStreamError("reserved bits set in the header of a fast weight stream", offset=0)
    code_bits = 8 if raw else 2 if small else 4
    length = _UNIT + -(-count * code_bits // 8)
    if not length <= len(data) < length + _UNIT:
        raise WeightStreamError(
            f"fast weight stream has {len(data)} bytes, {count} weights take {length}", offset=len(data)
        )
    codes = np.frombuffer(data, np.uint8, length - _UNIT, _UNIT)
    if raw:
        zero_adjust = int.from_bytes(data[13:14], "little", signed=True)
        return codes.view(np.int8).astype(np.int16) - np.int16(zero_adjust)
    return _by_byte(_table(header), code_bits)[codes].ravel()[:count]


def _table(header: int) -> np.ndarray:
    """The 16 values of the header, sign in bit 0: int16[16]."""
    coded = [header >> (_TABLE_BIT + _ENTRY_BITS * entry) & 0x1FF for entry in range(16)]
    return np.array([-(code >> 1) if code & 1 else code >> 1 for code in coded], np.int16)


def _by_byte(table: np.ndarray, code_bits: int) -> np.ndarray:
    """All codes of a byte at once: int16[256, 8 / code_bits], low bits first."""
    shifts = np.arange(0, 8, code_bits)
    return table[np.arange(256)[:, None] >> shifts & (1 << code_bits) - 1]

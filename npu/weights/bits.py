# SPDX-License-Identifier: Apache-2.0
"""Little-endian bit fields of a byte string: bit 0 is the LSB of byte 0."""

from __future__ import annotations

import numpy as np

# A reader may run past the end by this many bytes before it notices; the excess reads as zero.
_MARGIN = 16


class BitView:
    """A byte string seen as bits, for scalar and vectorised reads.

    Attributes:
        length: number of bits.
        windows: for each 16-bit unit the 64 bits that start there, so that `windows[p >> 4] >> (p & 15)` has
            at least 49 valid bits. An index beyond the end raises IndexError, which bounds loops.
    """

    def __init__(self, data: bytes):
        self.length = 8 * len(data)
        padded = np.zeros(len(data) + len(data) % 2 + _MARGIN, np.uint8)
        padded[: len(data)] = np.frombuffer(data, np.uint8)
        units = padded.view("<u2")
        count = len(units) - 3
        quads = np.stack([units[shift : shift + count] for shift in range(4)], axis=1)
        self.windows = memoryview(quads.view("<u8")[:, 0].astype(np.uint64, copy=False)).toreadonly()
        self._bytes = padded
        self._pairs = padded[:-1] | padded[1:].astype(np.uint16) << np.uint16(8)

    def field(self, position: int, width: int) -> int:
        """One field of at most 49 bits. Raises IndexError beyond the end."""
        return self.windows[position >> 4] >> (position & 15) & ((1 << width) - 1)

    def narrow(self, positions: np.ndarray, width: int) -> np.ndarray:
        """Fields of at most 9 bits at each of `positions` (int64), as uint16; all must lie inside."""
        shifts = (positions & 7).astype(np.uint16)
        return self._pairs[positions >> 3] >> shifts & np.uint16((1 << width) - 1)

    def wide(self, positions: np.ndarray, width: int) -> np.ndarray:
        """Fields of at most 17 bits at each of `positions` (int64), as int64; all must lie inside."""
        first = positions >> 3
        word = self._pairs[first].astype(np.int64) | self._bytes[first + 2].astype(np.int64) << 16
        return word >> (positions & 7) & ((1 << width) - 1)

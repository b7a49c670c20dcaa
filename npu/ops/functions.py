# SPDX-License-Identifier: Apache-2.0
"""Table look-up of the output stage, and the built-in tanh and sigmoid."""

from __future__ import annotations

import numpy as np

TABLE16_BYTES = 2048
INT16_LIMITS = (-0x8000, 0x7FFF)


def lookup(values: np.ndarray, table: np.ndarray, output: np.dtype) -> np.ndarray:
    """Map 8-bit values by an entry each, or 16-bit values by interpolation.

    8 bits: entry value + 128 (signed) or value (unsigned) of a table of the output type.
    16 bits: 512 pairs (base, slope); with i = (v + 32768) >> 7 and f = v & 127 the result is
    base + ((slope * f + 64) >> 7) for a 16-bit output, (base << 7) + slope * f for a 32-bit one.
    """
    if values.dtype.itemsize == 1:
        entries = np.roll(table, -128) if values.dtype.kind == "i" else table
        return np.take(entries, values.view(np.uint8))
    wide = values.astype(np.int32)
    fraction = wide & 127
    index = (wide + 0x8000) >> 7
    base, slope = table[:, 0].astype(np.int32)[index], table[:, 1].astype(np.int32)[index]
    if output.itemsize > 2:
        return ((base << 7) + slope * fraction).astype(output)
    return (base + ((slope * fraction + 64) >> 7)).astype(output)

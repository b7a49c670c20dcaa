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


# TensorFlow Lite's table for its 16-bit sigmoid and tanh: about 65536 * sigmoid(i / 24), not always the
# nearest integer. That the hardware uses it is inferred from the scales the compiler emits with these two
# functions.
_SIGMOID_TEXT = """
    32768 33451 34133 34813 35493 36169 36843 37513 38180 38841 39498 40149 40794 41432 42064 42688
    43304 43912 44511 45102 45683 46255 46817 47369 47911 48443 48964 49475 49975 50464 50942 51409
    51865 52311 52745 53169 53581 53983 54374 54755 55125 55485 55834 56174 56503 56823 57133 57433
    57724 58007 58280 58544 58800 59048 59288 59519 59743 59959 60168 60370 60565 60753 60935 61110
    61279 61441 61599 61750 61896 62036 62172 62302 62428 62549 62666 62778 62886 62990 63090 63186
    63279 63368 63454 63536 63615 63691 63765 63835 63903 63968 64030 64090 64148 64204 64257 64308
    64357 64405 64450 64494 64536 64576 64614 64652 64687 64721 64754 64786 64816 64845 64873 64900
    64926 64950 64974 64997 65019 65039 65060 65079 65097 65115 65132 65149 65164 65179 65194 65208
    65221 65234 65246 65258 65269 65280 65291 65301 65310 65319 65328 65337 65345 65352 65360 65367
    65374 65381 65387 65393 65399 65404 65410 65415 65420 65425 65429 65433 65438 65442 65445 65449
    65453 65456 65459 65462 65465 65468 65471 65474 65476 65479 65481 65483 65485 65488 65489 65491
    65493 65495 65497 65498 65500 65501 65503 65504 65505 65507 65508 65509 65510 65511 65512 65513
    65514 65515 65516 65517 65517 65518 65519 65520 65520 65521 65522 65522 65523 65523 65524 65524
    65525 65525 65526 65526 65526 65527 65527 65528 65528 65528 65529 65529 65529 65529 65530 65530
    65530 65530 65531 65531 65531 65531 65531 65532 65532 65532 65532 65532 65532 65533 65533 65533
    65533 65533 65533 65533 65533 65534 65534 65534 65534 65534 65534 65534 65534 65534 65534 65535
"""
_SIGMOID = np.array(_SIGMOID_TEXT.split(), np.int64)


def sigmoid(values: np.ndarray) -> np.ndarray:
    """Sigmoid of int64 values in units of 1 / (3 * 4096), result in units of 2^-15."""
    result = _interpolated(np.abs(values), 9, 0x7FFF << 10)
    return np.where(values >= 0, result + 512, (1 << 25) - result + 511) >> 10


def tanh(values: np.ndarray) -> np.ndarray:
    """Tanh of int64 values in units of 1 / (3 * 4096), result in units of 2^-15: 2 * sigmoid(2x) - 1."""
    result = _interpolated(np.abs(values), 8, 0xFFFF << 8)
    return np.where(values >= 0, result - (1 << 23) + 128, -result + (1 << 23) + 127) >> 8


def _interpolated(magnitudes: np.ndarray, bits: int, saturated: int) -> np.ndarray:
    """The table at magnitude / 2^bits, times 2^bits, or `saturated` from its last entry on."""
    index = magnitudes >> bits
    inside = np.minimum(index, len(_SIGMOID) - 2)
    low, high = _SIGMOID[inside], _SIGMOID[inside + 1]
    between = (low << bits) + (magnitudes & ((1 << bits) - 1)) * (high - low)
    return np.where(index >= len(_SIGMOID) - 1, saturated, between)

# SPDX-License-Identifier: Apache-2.0
"""What the model takes to be true of the hardware without a published description.

Each is inferred from the streams that Vela emits and the results they must have. An Npu made with
`strict=True` refuses a stream that relies on one; otherwise the run's result names those it relied on.
"""

from __future__ import annotations

import enum


class Guess(enum.Enum):
    """An assumption about hardware; the value says it in a sentence."""

    AVERAGE_DIVISION = "an average divides by the valid elements with a reciprocal slightly above 1/n"
    BRANCH_CONDITION = "a conditional branch is taken when the last result, one element, is not zero"
    MUL32_SHIFT_ONLY = "a 32-bit elementwise product ignores the multiplier of OFM_SCALE"
    SMOOTH_TABLE = "tanh and sigmoid interpolate TensorFlow Lite's 16-bit table"
    SMALL_RAM_TABLE = "with 16 KiB of shared RAM the table of a convolution lies behind its end"
    RESIZE_REPLICATE = "RESIZE in replicate mode takes the element at the position rounded down"
    TILES_3X1 = "3x1 tiles stack: HEIGHT0 rows at BASE0, HEIGHT1 rows at BASE1, the rest at BASE2"

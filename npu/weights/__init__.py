# SPDX-License-Identifier: Apache-2.0
"""Weight and scale streams of the Ethos-U: from bytes to tensors, bit-exactly.

layout   what the registers say about an operation's weights
order    the loops that define where each weight is in a stream
slices   standard stream: where its parts are            mlw     standard stream: reading them
fast     the U85's fixed-width stream                    scales  bias, multiplier and shift
bits     bit fields, one or many at a time               cache   keeping results in memory and on disk
decode   all of it put together
"""

from npu.weights.decode import clear_memory, decode_weights
from npu.weights.layout import Traversal, WeightFormat, WeightLayout
from npu.weights.order import PADDING, weight_order
from npu.weights.scales import Scales, decode_scales

__all__ = [
    "PADDING",
    "Scales",
    "Traversal",
    "WeightFormat",
    "WeightLayout",
    "clear_memory",
    "decode_scales",
    "decode_weights",
    "weight_order",
]

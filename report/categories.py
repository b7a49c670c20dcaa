# SPDX-License-Identifier: Apache-2.0
"""Operator categories of a CPU profile: one table over the identity of an executed operator.

The identity is the operator's own name, whole: for XNNPACK ("Convolution (NHWC, PF32) IGEMM #1") what
stands before the parenthesis, compared for equality, never searched for a part. A 1x1 convolution that
XNNPACK executes as "Fully Connected" is a GEMM here, as it is there. What is not in the table is `OTHER`:
pooling, softmax, reductions and resizing inside a delegate, every operator outside of one, and the framework
between operators.

The five categories are those of Arm's published study of SqueezeSAM with SME2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

CONVOLUTION, GEMM, ELEMENTWISE, MOVEMENT, OTHER = (
    "convolution",
    "GEMM",
    "elementwise",
    "data movement",
    "other",
)
CATEGORIES = (CONVOLUTION, GEMM, ELEMENTWISE, MOVEMENT, OTHER)

_IDENTITIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        CONVOLUTION: ("Convolution", "Deconvolution"),
        GEMM: (
            "Fully Connected",
            "Dynamic Fully Connected",
            "Batch Matrix Multiply",
            "Scaled Dot-Product Attention",
        ),
        ELEMENTWISE: (
            *(
                "Unary Elementwise",
                "Binary Elementwise",
                "Abs",
                "Add",
                "Bankers Rounding",
                "Ceiling",
                "Clamp",
            ),
            *(
                "Copysign",
                "Cosine",
                "Divide",
                "ELU",
                "Exp",
                "Floor",
                "GELU",
                "ApproxGELU",
                "HardSwish",
                "Leaky ReLU",
            ),
            *(
                "Log",
                "Maximum",
                "Minimum",
                "Multiply",
                "Negate",
                "PReLU",
                "Reciprocal Square Root",
                "Sigmoid",
            ),
            *("Sine", "Square", "Square Root", "Squared Difference", "Subtract", "Tanh", "VMulCAddC"),
        ),
        MOVEMENT: (
            *("Transpose", "Copy", "Convert", "Constant Pad", "Static Reshape", "Slice", "Depth To Space"),
            *(
                "Space To Depth",
                "Channel Shuffle",
                "Unpooling",
                "Broadcast",
                "Expand Dims",
                "Split Dims",
                "Fuse Dims",
            ),
            *("Concatenate", "Pack LH"),
        ),
    }
)
"""XNNPACK's names of operator types, and those its runtime gives to what it copies itself."""

_CATEGORY_OF = {name: category for category, names in _IDENTITIES.items() for name in names}

_XNNPACK_NAME = re.compile(
    r"(?P<identity>[^(]+?) \((?P<types>[^)]*)\)(?: (?P<kernel>[A-Za-z]\w*))?(?: #\d+)?$"
)
_LAYOUTS = frozenset({"NHWC", "NCHW", "NC", "ND", "NCW", "NWC"})


@dataclass(frozen=True)
class Operator:
    """What an operator's name says.

    Attributes:
        identity: the operator, without types, kernel and number.
        path: the data types its kernel is made for: ``PF32``, ``PF16``, ``PQS8`` mean KleidiAI's packed
            kernels, ``F32``, ``F16``, ``QS8`` and the like XNNPACK's own; "" where the name has none.
        kernel: ``IGEMM``, ``GEMM``, ``DWConv`` …, "" where the name has none.
    """

    identity: str
    path: str
    kernel: str


def parse_name(name: str) -> Operator:
    """An operator name of XNNPACK's profile taken apart; a name of another form is its own identity."""
    match = _XNNPACK_NAME.match(name)
    if match is None:
        return Operator(name, "", "")
    types = [part.strip() for part in match["types"].split(",")]
    return Operator(
        match["identity"], ", ".join(t for t in types if t not in _LAYOUTS), match["kernel"] or ""
    )


def category_of(name: str, *, delegated: bool) -> str:
    """One of `CATEGORIES` for an executed operator."""
    return _CATEGORY_OF.get(parse_name(name).identity, OTHER) if delegated else OTHER

# SPDX-License-Identifier: Apache-2.0
"""The operations: each is given an Execution and an Operation or DmaTransfer, and returns its MAC count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from npu.ops import conv, depthwise, dma, elementwise, pool, resize

EXECUTE: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "OP_CONV": conv.execute,
        "OP_DEPTHWISE": depthwise.execute,
        "OP_POOL": pool.execute,
        "OP_ELEMENTWISE": elementwise.execute,
        "OP_RESIZE": resize.execute,
        "OP_DMA_START": dma.execute,
    }
)

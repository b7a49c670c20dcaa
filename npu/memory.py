# SPDX-License-Identifier: Apache-2.0
"""What the NPU can reach: up to eight regions (base pointers), each a run of bytes with hard bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from npu.errors import BusError

REGIONS = 8


class Memory(Protocol):
    """Byte-addressed regions. Every access outside its region raises BusError and changes nothing."""

    def read(self, region: int, offset: int, size: int) -> np.ndarray:
        """uint8[size]; may be a view, is not written to."""

    def write(self, region: int, offset: int, data: np.ndarray) -> None:
        """Store uint8 data."""

    def window(self, region: int, offset: int, size: int) -> np.ndarray:
        """uint8[size], a view that the caller stores through (for strided stores); counts as written."""


class ArrayMemory:
    """Memory over NumPy arrays; two regions may share one array.

    Attributes:
        written: per region, the (start, end) byte ranges stored to since construction, in order, neighbours
            merged.
    """

    def __init__(self, regions: Mapping[int, np.ndarray]):
        for region, array in regions.items():
            if not 0 <= region < REGIONS or array.dtype != np.uint8 or array.ndim != 1:
                raise ValueError(f"region {region} must be 0-7 and a flat uint8 array")
        self._regions = dict(regions)
        self.written: dict[int, list[tuple[int, int]]] = {}

    def read(self, region: int, offset: int, size: int) -> np.ndarray:
        array = self._regions.get(region)
        if array is None or offset < 0 or size < 0 or offset + size > array.size:
            raise BusError(region, offset, size)
        return array[offset : offset + size]

    def write(self, region: int, offset: int, data: np.ndarray) -> None:
        self.window(region, offset, data.size)[:] = data

    def window(self, region: int, offset: int, size: int) -> np.ndarray:
        view = self.read(region, offset, size)
        if not view.flags.writeable:
            raise BusError(region, offset, size)
        ranges = self.written.setdefault(region, [])
        if ranges and ranges[-1][0] <= offset <= ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], offset + size)
        else:
            ranges.append((offset, offset + size))
        return view

# SPDX-License-Identifier: Apache-2.0
"""Which operation wrote a byte of memory last, read out of the stream alone."""

from __future__ import annotations

import numpy as np

from npu.config import Family
from npu.featuremap import FeatureMap
from npu.isa import Storage
from npu.operation import DmaTransfer
from npu.stream import CommandStream
from npu.walk import Step, walk


def last_writer(stream: CommandStream, family: Family, region: int, address: int) -> Step | None:
    """The last operation whose result covers byte `address` of `region`; None when there is none.

    Raises:
        NpuError: registers without a known meaning.
    """
    found = None
    for step in walk(stream.commands, family):
        if _writes(step, region, address):
            found = step
    return found


def _writes(step: Step, region: int, address: int) -> bool:
    if isinstance(step.work, DmaTransfer):
        return _transfer_writes(step.work, region, address)
    op = step.work
    stored = op.accumulator.output and op.ofm.storage in (Storage.TILE_2X2, Storage.TILE_3X1)
    return stored and op.ofm.region == region and _covers(op.ofm, address)


def _transfer_writes(work: DmaTransfer, region: int, address: int) -> bool:
    place = work.destination
    if place.internal or place.region != region or place.indexed:
        return False
    for plane in range(work.size1):
        offset = address - place.address - plane * place.stride1
        row = offset // place.stride0 if place.stride0 else 0
        if 0 <= row < work.size0 and 0 <= offset - row * place.stride0 < work.length:
            return True
    return False


class _OneByte:
    """`npu.memory.Memory` that is all zero and notes whether a view of it holds one address."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.marks: list[tuple[np.ndarray, int]] = []

    def read(self, region: int, offset: int, size: int) -> np.ndarray:
        return self.window(region, offset, size)

    def write(self, region: int, offset: int, data: np.ndarray) -> None:
        self.window(region, offset, data.size)[:] = data

    def window(self, region: int, offset: int, size: int) -> np.ndarray:
        """uint8[size]; kept when it holds the address."""
        span = np.zeros(size, np.uint8)
        if offset <= self.address < offset + size:
            self.marks.append((span, self.address - offset))
        return span


def _covers(fm: FeatureMap, address: int) -> bool:
    """Whether an element of the map lies on the address: gaps between rows do not count."""
    memory = _OneByte(address)
    for _, view in fm.views(memory, store=True):
        view[...] = -1 if view.dtype.kind == "i" else np.iinfo(view.dtype).max
    return any(span[index] for span, index in memory.marks)

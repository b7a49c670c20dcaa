# SPDX-License-Identifier: Apache-2.0
"""What operations share while a stream runs: memories, accumulator, and the accounts.

All reads of feature maps go through `Execution.load*`, all stores through `Execution.store`, so bytes are
counted in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import numpy as np

from npu import featuremap, isa
from npu.config import Family, NpuConfig
from npu.errors import NotModelled, StreamError
from npu.featuremap import FeatureMap
from npu.guesses import Guess
from npu.memory import Memory
from npu.operation import Operation
from npu.state import LUT_BYTES, TRANSPOSE_AXES

_SMALL_RAM = 16 * 1024


class RowStore(Protocol):
    """Where an operation puts its result: rows from the top, then `close`."""

    def rows(self, top: int, block: np.ndarray) -> None:
        """Store `block` [rows, w, c] (axes before transposition) at row `top`."""

    def close(self) -> None:
        """All rows are stored."""


class Execution:
    """State of one run outside the registers.

    Attributes:
        tables: the 2 KiB table memory that DMA fills and activations look up.
        chained: contents of the chaining buffers by number (U85).
        accumulator: what an operation kept for the next one (U85), int64[h, w, c].
        read, written: bytes of distinct elements moved, by region, since `take_traffic`.
        guesses: assumptions about hardware that the run has relied on.
    """

    def __init__(self, config: NpuConfig, memory: Memory, *, strict: bool = False):
        self.config = config
        self.memory = memory
        self.strict = strict
        self.guesses: set[Guess] = set()
        self.tables = np.zeros(LUT_BYTES, np.uint8)
        self.chained: dict[int, np.ndarray] = {}
        self.accumulator: np.ndarray | None = None
        self.read: Counter[int] = Counter()
        self.written: Counter[int] = Counter()

    def assume(self, guess: Guess) -> None:
        """Note that the result rests on a guess about hardware.

        Raises:
            NotModelled: the run is strict.
        """
        if self.strict:
            raise NotModelled(f"not published: {guess.value}")
        self.guesses.add(guess)

    def take_traffic(self) -> tuple[dict[int, int], dict[int, int]]:
        """Bytes read and written by region since the last call."""
        traffic = dict(self.read), dict(self.written)
        self.read.clear()
        self.written.clear()
        return traffic

    def table(self, offset: int, size: int) -> np.ndarray:
        """Bytes of the table memory."""
        if offset + size > LUT_BYTES:
            raise StreamError(f"table at {offset:#x} of {size} bytes is outside table memory")
        return self.tables[offset : offset + size]

    def internal(self, address: int, size: int) -> np.ndarray:
        """On-chip bytes that DMA addresses: the table memory.

        On U55 and U65 it is the last 2 KiB of a core's shared RAM. Where the shared RAM has only 16 KiB, Vela
        puts the table of a convolution behind its end, at 0x4000; that this reaches the same table memory is
        a guess.

        Raises:
            StreamError: another internal address.
        """
        offset = address
        if self.config.family is not Family.U85:
            ram = self.config.shram_kb * 1024 // self.config.cores
            behind = ram <= _SMALL_RAM and address >= ram
            if behind:
                self.assume(Guess.SMALL_RAM_TABLE)
            offset -= ram if behind else ram - LUT_BYTES
        if offset < 0 or offset + size > LUT_BYTES:
            raise StreamError(f"{size} bytes at on-chip address {address:#x} are not in the table memory")
        return self.tables[offset : offset + size]

    def bytes_at(self, region: int, base: int, length: int) -> bytes:
        """Contents of a stream of weights or scales."""
        self.read[region] += length
        return self.memory.read(region, base, length).tobytes()

    def load(self, fm: FeatureMap, dtype: type | np.dtype | None = None) -> np.ndarray:
        """Elements [h, w, c], possibly a view of memory; int64 for a scalar unless asked otherwise."""
        if fm.storage is isa.Storage.NONE:
            return np.full(fm.shape, fm.scalar, dtype or np.int64)
        if fm.storage is isa.Storage.CHAINED:
            return self._chained(fm, dtype)
        self._check_tiles(fm)
        array = featuremap.load(fm, self.memory, dtype)
        self.read[fm.region] += fm.size
        return array

    def load_into(self, fm: FeatureMap, target: np.ndarray) -> None:
        """Elements into `target` [h, w, c]."""
        if fm.storage is isa.Storage.CHAINED:
            target[...] = self._chained(fm, None)
            return
        self._check_tiles(fm)
        featuremap.load_into(fm, self.memory, target)
        self.read[fm.region] += fm.size

    def _check_tiles(self, fm: FeatureMap) -> None:
        if fm.storage is isa.Storage.TILE_3X1:
            self.assume(Guess.TILES_3X1)

    def _chained(self, fm: FeatureMap, dtype: type | np.dtype | None) -> np.ndarray:
        buffer = self.chained.get(fm.region)
        if buffer is None:
            raise StreamError(f"chaining buffer {fm.region} is empty")
        if buffer.size != fm.elements:
            raise StreamError(
                f"chaining buffer {fm.region} holds {buffer.size} elements, {fm.elements} are read"
            )
        return buffer.reshape(fm.shape).astype(dtype or buffer.dtype, copy=False)

    def store(self, op: Operation) -> RowStore:
        """Destination of the operation's result.

        Raises:
            StreamError, NotModelled, BusError: the map cannot be stored; nothing has been.
        """
        storage = op.ofm.storage
        if storage is isa.Storage.CHAINED:
            return _Collected(op.ofm_shape, op.ofm.dtype, lambda array: self._chain(op.ofm.region, array))
        if storage is isa.Storage.NONE:
            raise NotModelled("a result that is stored nowhere")
        self._check_tiles(op.ofm)
        target = featuremap.Store(op.ofm, self.memory)
        self.written[op.ofm.region] += op.ofm.size
        if op.transpose is isa.Transpose.HWC and op.reverse is isa.Reverse.NONE:
            return target
        return _Collected(op.ofm_shape, op.ofm.dtype, lambda array: target.rows(0, _reordered(op, array)))

    def _chain(self, number: int, array: np.ndarray) -> None:
        self.chained[number] = array


class _Collected:
    """Keeps the whole result and hands it over at the end."""

    def __init__(self, shape: tuple[int, int, int], dtype: np.dtype, done: Callable[[np.ndarray], None]):
        self._array = np.empty(shape, dtype)
        self._done = done

    def rows(self, top: int, block: np.ndarray) -> None:
        self._array[top : top + len(block)] = block

    def close(self) -> None:
        self._done(self._array)


def _reordered(op: Operation, array: np.ndarray) -> np.ndarray:
    if op.reverse is not isa.Reverse.NONE:
        array = np.flip(array, op.reverse - isa.Reverse.H)
    return array.transpose(TRANSPOSE_AXES[op.transpose])

# SPDX-License-Identifier: Apache-2.0
"""Feature maps in memory: NHWC and NHCWB16, up to 2x2 or 3x1 tiles, signed strides.

Address of element (y, x, c), relative to the tile's base and with y and x relative to the tile's corner:

    NHWC      y * stride_y + x * stride_x + c * size
    NHCWB16   y * stride_y + c // 16 * stride_c + x * 16 * size + c % 16 * size

A tile is therefore one strided array over one span of bytes (a brick map: the whole bricks and the rest).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npu.errors import NotModelled, StreamError
from npu.isa import Layout, Storage
from npu.memory import Memory

BRICK = 16
MAX_ELEMENTS = 1 << 25

_Slices = tuple[slice, slice, slice]


@dataclass(frozen=True)
class _Span:
    """A strided array over `size` bytes from `low` on, which starts `offset` in; `place` is in [h, w, c]."""

    place: _Slices
    low: int
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class FeatureMap:
    """A feature map as the registers describe it.

    Attributes:
        shape: (height, width, depth) in elements, as laid out in memory.
        dtype: element type; 48-bit data are 64-bit elements.
        storage, region: where it is; for a chained map the region is the number of the chaining buffer.
        bases: byte offsets of the tiles, left-top, right-top, left-low, right-low (3x1: from the top).
        width0, height0, height1: extent of the left column, of its upper tile, and of the right upper tile
            (3x1: height of the first and of the second tile).
        stride_y, stride_x, stride_c: bytes, may be negative.
        scalar: the value of a scalar operand (storage NONE, shape 1x1x1).
    """

    shape: tuple[int, int, int]
    dtype: np.dtype
    layout: Layout
    storage: Storage
    region: int
    bases: tuple[int, int, int, int]
    width0: int
    height0: int
    height1: int
    stride_y: int
    stride_x: int
    stride_c: int
    zero_point: int
    scalar: int = 0

    @property
    def elements(self) -> int:
        height, width, depth = self.shape
        return height * width * depth

    @property
    def size(self) -> int:
        """Bytes of the elements, without gaps."""
        return self.elements * self.dtype.itemsize

    def check(self) -> None:
        """Reject what cannot be read or stored at all.

        Raises:
            StreamError: an empty map, or a brick map that is not 16-byte aligned.
            NotModelled: more than MAX_ELEMENTS elements.
        """
        if min(self.shape) < 1:
            raise StreamError(f"feature map of shape {self.shape}")
        if self.elements > MAX_ELEMENTS:
            raise NotModelled(f"feature map of {self.elements} elements (at most {MAX_ELEMENTS})")
        if self.layout is Layout.NHCWB16 and any(base % BRICK for base, _, _ in self._tiles()):
            raise StreamError("base of an NHCWB16 feature map is not 16-byte aligned")

    def _tiles(self) -> Iterator[tuple[int, tuple[int, int], tuple[int, int]]]:
        """(base, (first row, end row), (first column, end column)) of the tiles in use."""
        height, width, _ = self.shape
        if self.storage is Storage.TILE_3X1:
            yield from self._stacked_tiles(height, width)
            return
        columns = ((0, min(width, self.width0), self.height0), (self.width0, width, self.height1))
        for column, (left, right, split) in enumerate(columns):
            if left >= right:
                continue
            yield self.bases[column], (0, min(height, split)), (left, right)
            if height > split:
                yield self.bases[column + 2], (split, height), (left, right)

    def _stacked_tiles(
        self, height: int, width: int
    ) -> Iterator[tuple[int, tuple[int, int], tuple[int, int]]]:
        ends = min(height, self.height0), min(height, self.height0 + self.height1), height
        for base, top, bottom in zip(self.bases, (0, *ends), ends, strict=False):
            if top < bottom:
                yield base, (top, bottom), (0, width)

    def views(self, memory: Memory, *, store: bool = False) -> Iterator[tuple[_Slices, np.ndarray]]:
        """The map as strided arrays over memory: (where it lies in [h, w, c], array).

        Arrays have three axes, or four for whole bricks: [h, w, c // 16, 16]. With `store` they are writable.

        Raises:
            BusError: some element is outside the region.
        """
        access = memory.window if store else memory.read
        for span in self._spans:
            data = access(self.region, span.low, span.size)
            yield span.place, np.ndarray(span.shape, self.dtype, data, span.offset, span.strides)

    @cached_property
    def _spans(self) -> tuple[_Span, ...]:
        return tuple(self._each_span())

    def _each_span(self) -> Iterator[_Span]:
        depth, size = self.shape[2], self.dtype.itemsize
        for base, (top, bottom), (left, right) in self._tiles():
            rows, columns = bottom - top, right - left
            place = slice(top, bottom), slice(left, right)
            if self.layout is Layout.NHWC:
                strides = self.stride_y, self.stride_x, size
                yield self._span((*place, slice(0, depth)), base, (rows, columns, depth), strides)
                continue
            bricks, rest = divmod(depth, BRICK)
            pixel, whole = BRICK * size, bricks * BRICK
            if bricks:
                bricked = self.stride_y, pixel, self.stride_c, size
                yield self._span((*place, slice(0, whole)), base, (rows, columns, bricks, BRICK), bricked)
            if rest:
                base += bricks * self.stride_c
                strides = self.stride_y, pixel, size
                yield self._span((*place, slice(whole, depth)), base, (rows, columns, rest), strides)

    def _span(self, place: _Slices, base: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> _Span:
        reach = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
        low = base + sum(min(0, step) for step in reach)
        high = base + sum(max(0, step) for step in reach) + self.dtype.itemsize
        return _Span(place, low, high - low, shape, strides, base - low)


def load(fm: FeatureMap, memory: Memory, dtype: np.dtype | type | None = None) -> np.ndarray:
    """Elements [h, w, c], converted to `dtype` if given. A view of memory where no copy is needed.

    Raises:
        StreamError, NotModelled: see FeatureMap.check. BusError: an element outside the region.
    """
    fm.check()
    views = list(fm.views(memory))
    if dtype is None and views[0][1].shape == fm.shape:
        return views[0][1]
    return _fill(np.empty(fm.shape, dtype or fm.dtype), views)


def load_into(fm: FeatureMap, memory: Memory, target: np.ndarray) -> None:
    """As `load`, into `target` [h, w, c] of any type that holds the values."""
    fm.check()
    _fill(target, list(fm.views(memory)))


def _fill(target: np.ndarray, views: list[tuple[_Slices, np.ndarray]]) -> np.ndarray:
    for place, view in views:
        _as_view(target[place], view.ndim)[...] = view
    return target


def _as_view(array: np.ndarray, ndim: int) -> np.ndarray:
    """The array itself, or its channels split into bricks."""
    return array if ndim == 3 else array.reshape(*array.shape[:2], -1, BRICK)


class Store:
    """Row-wise store into a feature map.

    Raises (constructor): StreamError, NotModelled, BusError as `load` does, before anything is stored.
    """

    def __init__(self, fm: FeatureMap, memory: Memory):
        fm.check()
        self._views = list(fm.views(memory, store=True))

    def rows(self, top: int, block: np.ndarray) -> None:
        """Store `block` [rows, w, c] from row `top` on; its dtype is the map's."""
        for (rows, columns, channels), view in self._views:
            first, end = max(top, rows.start), min(top + len(block), rows.stop)
            if first < end:
                part = block[first - top : end - top, columns, channels]
                view[first - rows.start : end - rows.start] = _as_view(part, view.ndim)

    def close(self) -> None:
        """Nothing is held back."""

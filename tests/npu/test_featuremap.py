# SPDX-License-Identifier: Apache-2.0
"""Feature maps against the address formula, element by element."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu.errors import BusError, NotModelled, StreamError
from npu.featuremap import FeatureMap, Store, load, load_into
from npu.isa import Layout, Storage
from npu.memory import ArrayMemory

SIZE = 1 << 17


def address(fm: FeatureMap, y: int, x: int, c: int) -> int:
    base, y, x = (stacked if fm.storage is Storage.TILE_3X1 else quartered)(fm, y, x)
    size = fm.dtype.itemsize
    if fm.layout is Layout.NHWC:
        return base + y * fm.stride_y + x * fm.stride_x + c * size
    return base + y * fm.stride_y + c // 16 * fm.stride_c + x * 16 * size + c % 16 * size


def quartered(fm: FeatureMap, y: int, x: int) -> tuple[int, int, int]:
    """(base, y, x) in the tile, of up to four."""
    right = x >= fm.width0
    split = fm.height1 if right else fm.height0
    low = y >= split
    return fm.bases[right + 2 * low], y - split * low, x - fm.width0 * right


def stacked(fm: FeatureMap, y: int, x: int) -> tuple[int, int, int]:
    """(base, y, x) in the tile, of up to three."""
    if y < fm.height0:
        return fm.bases[0], y, x
    if y < fm.height0 + fm.height1:
        return fm.bases[1], y - fm.height0, x
    return fm.bases[2], y - fm.height0 - fm.height1, x


@st.composite
def feature_maps(draw: st.DrawFn) -> FeatureMap:
    height, width = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    depth = draw(st.sampled_from([1, 3, 15, 16, 17, 32, 37]))
    dtype = np.dtype(draw(st.sampled_from(["i1", "u1", "<i2", "<i4", "<i8"])))
    layout = draw(st.sampled_from(Layout))
    bricks = -(-depth // 16)
    pixel = depth * dtype.itemsize if layout is Layout.NHWC else 16 * dtype.itemsize
    row = pixel * width * (1 if layout is Layout.NHWC else bricks) + 16 * draw(st.integers(0, 2))
    sign = draw(st.sampled_from([1, -1]))
    # Four tiles far apart, each in the middle of its own quarter so that strides may be negative; the largest
    # takes six rows of 2,336 bytes.
    bases = tuple(16 * (1024 + 2048 * tile) for tile in draw(st.permutations(range(4))))
    return FeatureMap(
        shape=(height, width, depth),
        dtype=dtype,
        layout=layout,
        storage=draw(st.sampled_from([Storage.TILE_2X2, Storage.TILE_3X1])),
        region=1,
        bases=bases,
        width0=draw(st.integers(1, 7)),
        height0=draw(st.integers(1, 7)),
        height1=draw(st.integers(1, 7)),
        stride_y=sign * row,
        stride_x=pixel,
        stride_c=16 * dtype.itemsize * width,
        zero_point=0,
    )


def indices(fm: FeatureMap):
    return np.ndindex(*fm.shape)


@settings(max_examples=150, deadline=None)
@given(fm=feature_maps(), seed=st.integers(0, 1 << 16))
def test_load(fm: FeatureMap, seed: int) -> None:
    data = np.random.default_rng(seed).integers(0, 256, SIZE, np.uint8)
    memory = ArrayMemory({1: data})
    got = load(fm, memory)
    into = np.zeros((fm.shape[0] + 2, fm.shape[1] + 2, fm.shape[2]), np.float64)
    load_into(fm, memory, into[1:-1, 1:-1])
    size = fm.dtype.itemsize
    for y, x, c in indices(fm):
        start = address(fm, y, x, c)
        want = data[start : start + size].view(fm.dtype)[0]
        assert got[y, x, c] == want
        assert into[y + 1, x + 1, c] == float(want)


@settings(max_examples=150, deadline=None)
@given(fm=feature_maps(), seed=st.integers(0, 1 << 16), step=st.integers(1, 4))
def test_store_writes_the_elements_and_nothing_else(fm: FeatureMap, seed: int, step: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, SIZE, np.uint8)
    block = rng.integers(-100, 100, fm.shape).astype(fm.dtype)
    want = data.copy()
    for y, x, c in indices(fm):
        start = address(fm, y, x, c)
        want[start : start + fm.dtype.itemsize] = block[y, x, c : c + 1].view(np.uint8)
    store = Store(fm, ArrayMemory({1: data}))
    for top in range(0, fm.shape[0], step):
        store.rows(top, block[top : top + step])
    np.testing.assert_array_equal(data, want)


def plain(**changes) -> FeatureMap:
    values = {
        "shape": (2, 3, 4),
        "dtype": np.dtype("i1"),
        "layout": Layout.NHWC,
        "storage": Storage.TILE_2X2,
        "region": 1,
        "bases": (0, 0, 0, 0),
        "width0": 3,
        "height0": 2,
        "height1": 2,
        "stride_y": 12,
        "stride_x": 4,
        "stride_c": 1,
        "zero_point": 0,
    }
    return FeatureMap(**{**values, **changes})


def test_contiguous_map_is_a_view() -> None:
    data = np.arange(24, dtype=np.uint8)
    assert np.shares_memory(load(plain(), ArrayMemory({1: data})), data)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"bases": (1, 0, 0, 0)}, BusError),
        ({"bases": (-1, 0, 0, 0)}, BusError),
        ({"stride_y": 13}, BusError),
        ({"stride_y": -12}, BusError),
        ({"region": 2}, BusError),
        ({"shape": (65536, 65536, 65536), "stride_y": 0, "stride_x": 0}, NotModelled),
        ({"layout": Layout.NHCWB16, "bases": (8, 0, 0, 0)}, StreamError),
    ],
)
def test_impossible_maps(changes: dict, error: type[Exception]) -> None:
    memory = ArrayMemory({1: np.zeros(24, np.uint8)})
    for access in (load, Store):
        with pytest.raises(error):
            access(plain(**changes), memory)


def test_read_only_memory_is_not_stored_to() -> None:
    data = np.zeros(24, np.uint8)
    data.flags.writeable = False
    with pytest.raises(BusError):
        Store(plain(), ArrayMemory({1: data}))


def test_written_ranges() -> None:
    memory = ArrayMemory({1: np.zeros(64, np.uint8)})
    memory.write(1, 0, np.ones(8, np.uint8))
    memory.write(1, 8, np.ones(8, np.uint8))
    memory.write(1, 32, np.ones(4, np.uint8))
    assert memory.written == {1: [(0, 16), (32, 36)]}

# SPDX-License-Identifier: Apache-2.0
"""OP_DMA_START: copy 1D, 2D or 3D, gather and scatter by index, into or out of the on-chip table memory."""

from __future__ import annotations

import numpy as np

from npu.errors import NotModelled, StreamError
from npu.execution import Execution
from npu.operation import DmaPlace, DmaTransfer

MAX_ROWS = 1 << 22
MAX_BYTES = 1 << 30


def execute(run: Execution, transfer: DmaTransfer) -> int:
    """Row (i1, i0) goes from source + i1 * stride1 + i0 * stride0 to the same in the destination's terms.

    On an indexed side the element of the index list takes the place of i0. The list has size1 groups of
    size0 int32 values with `index_skip` bytes after each group. Rows are copied in order, so a later row
    wins.
    """
    rows = transfer.size0 * transfer.size1
    if rows < 1 or transfer.length < 1:
        raise StreamError(f"DMA of {transfer.size1} x {transfer.size0} rows of {transfer.length} bytes")
    if rows > MAX_ROWS or rows * transfer.length > MAX_BYTES:
        raise NotModelled(f"DMA of {rows} rows of {transfer.length} bytes")
    if transfer.source.indexed and transfer.destination.indexed:
        raise NotModelled("DMA with both sides indexed")
    indices = _indices(run, transfer)
    _copy(
        run,
        transfer,
        _addresses(transfer, transfer.source, indices),
        _addresses(transfer, transfer.destination, indices),
    )
    return 0


def _indices(run: Execution, transfer: DmaTransfer) -> np.ndarray | None:
    """int64[size1, size0], None for a transfer without index list."""
    if not (transfer.source.indexed or transfer.destination.indexed):
        return None
    group = 4 * transfer.size0
    pitch = group + transfer.index_skip
    if pitch < 0:
        raise NotModelled(f"index list that runs backwards ({transfer.index_skip} bytes)")
    size = pitch * (transfer.size1 - 1) + group
    raw = run.memory.read(transfer.index_region, transfer.index_address, size)
    run.read[transfer.index_region] += 4 * transfer.size0 * transfer.size1
    shape, strides = (transfer.size1, transfer.size0), (pitch, 4)
    indices = np.ndarray(shape, "<i4", buffer=raw, strides=strides).astype(np.int64)
    if indices.min() < 0 or indices.max() > transfer.index_max:
        raise NotModelled(f"DMA index outside 0 to {transfer.index_max}")
    return indices


def _addresses(transfer: DmaTransfer, place: DmaPlace, indices: np.ndarray | None) -> np.ndarray:
    """Byte offset of every row, int64[size1, size0]."""
    column = np.arange(transfer.size0, dtype=np.int64)
    if place.indexed and indices is not None:
        column = indices
    plane = np.arange(transfer.size1, dtype=np.int64)[:, None]
    return place.address + plane * place.stride1 + column * place.stride0 + np.zeros_like(plane)


def _copy(run: Execution, transfer: DmaTransfer, source: np.ndarray, destination: np.ndarray) -> None:
    length = transfer.length
    read, read_base = _span(run, transfer.source, source, length, store=False)
    # A copy first, so that overlapping spans do not feed on their own output.
    rows = np.lib.stride_tricks.sliding_window_view(read, length)[(source - read_base).reshape(-1)]
    target, base = _span(run, transfer.destination, destination, length, store=True)
    windows = np.lib.stride_tricks.sliding_window_view(target, length, writeable=True)
    windows[(destination - base).reshape(-1)] = rows


def _span(run: Execution, place: DmaPlace, addresses: np.ndarray, length: int, *, store: bool):
    """(bytes from the lowest to the highest address, the lowest address)."""
    low, high = int(addresses.min()), int(addresses.max()) + length
    if place.internal:
        return run.internal(low, high - low), low
    if store:
        run.written[place.region] += addresses.size * length
        return run.memory.window(place.region, low, high - low), low
    run.read[place.region] += addresses.size * length
    return run.memory.read(place.region, low, high - low), low

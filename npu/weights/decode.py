# SPDX-License-Identifier: Apache-2.0
"""From weight streams to a weight tensor."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npu.errors import WeightStreamError
from npu.weights import cache
from npu.weights.fast import decode_fast
from npu.weights.layout import WeightFormat, WeightLayout
from npu.weights.mlw import decode_standard
from npu.weights.order import PADDING, weight_order

# A zero in a run takes 1/8 bit: the densest that an encoder makes.
_MAX_WEIGHTS_PER_BYTE = 64
# Decoding this few weights is faster than reading a file.
_MIN_STORED = 1 << 12


@dataclass(frozen=True)
class _Gather:
    """A weight order turned round: `values[source]` is the tensor, `values[padding]` must be zero.

    `values` is the concatenation of all streams, of `counts` weights each.
    """

    counts: tuple[int, ...]
    source: np.ndarray
    padding: np.ndarray


_gathers: cache.MemoryCache[_Gather] = cache.MemoryCache(64 << 20)
_tensors: cache.MemoryCache[np.ndarray] = cache.MemoryCache(128 << 20)


def decode_weights(layout: WeightLayout, streams: Sequence[bytes]) -> np.ndarray:
    """Decode the weights of one operation.

    Args:
        streams: one byte string for each core, empty for a core without work. The fast format has a single
            one; further ones may be given if they are empty.

    Returns:
        int16 [OC, KH, KW, IC], depthwise [OC, KH, KW, 1]: weight minus its zero point. Read-only, since it
        is cached.

    Raises:
        WeightStreamError: a stream is truncated, malformed, or does not hold what the layout asks for.
        NotModelled: see WeightLayout.require_modelled.
    """
    key = _key(layout, streams)
    tensor = _tensors.get(key)
    if tensor is None:
        tensor = cache.load(key, layout.shape) if layout.size >= _MIN_STORED else None
        if tensor is None:
            tensor = _decode(layout, streams)
            if layout.size >= _MIN_STORED:
                cache.store(key, tensor)
        tensor.flags.writeable = False
        _tensors.put(key, tensor, tensor.nbytes)
    return tensor


def clear_memory() -> None:
    """Forget all decoded weights and orders of this process; for measurements."""
    _gathers.clear()
    _tensors.clear()


def _key(layout: WeightLayout, streams: Sequence[bytes]) -> str:
    digest = hashlib.blake2b(repr((layout, [len(stream) for stream in streams])).encode(), digest_size=20)
    for stream in streams:
        digest.update(stream)
    return digest.hexdigest()


def _decode(layout: WeightLayout, streams: Sequence[bytes]) -> np.ndarray:
    layout.require_modelled()
    streams, surplus = streams[: layout.stream_count], streams[layout.stream_count :]
    if len(streams) != layout.stream_count or any(surplus):
        raise WeightStreamError(
            f"{len(streams) + len(surplus)} weight streams, {layout.stream_count} expected"
        )
    total = sum(map(len, streams))
    if layout.size > total * _MAX_WEIGHTS_PER_BYTE:
        raise WeightStreamError(f"{total} bytes cannot hold {layout.size} weights", offset=total)
    gather = _gather(layout)
    decode = decode_fast if layout.weight_format is WeightFormat.FAST else decode_standard
    values = []
    for core, (stream, count) in enumerate(zip(streams, gather.counts, strict=True)):
        try:
            values.append(decode(stream, count))
        except WeightStreamError as error:
            error.what = f"core {core}: {error.what}"
            raise
    joined = np.concatenate(values)
    if joined[gather.padding].any():
        raise WeightStreamError("a position beyond the weights is not zero")
    return joined[gather.source].reshape(layout.shape)


def _gather(layout: WeightLayout) -> _Gather:
    gather = _gathers.get(layout)
    if gather is None:
        order = weight_order(layout)
        destination = np.concatenate(order)
        source = np.empty(layout.size, np.int32)
        real = np.flatnonzero(destination != PADDING)
        source[destination[real]] = real
        padding = np.flatnonzero(destination == PADDING).astype(np.int32)
        gather = _Gather(tuple(map(len, order)), source, padding)
        _gathers.put(layout, gather, source.nbytes + padding.nbytes)
    return gather

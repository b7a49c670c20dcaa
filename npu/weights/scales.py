# SPDX-License-Identifier: Apache-2.0
"""Bias and scale streams: ten bytes for each OFM channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npu.config import Family, NpuConfig
from npu.errors import WeightStreamError

_ENTRY_BYTES = 10


@dataclass(frozen=True)
class Scales:
    """Per-channel parameters of the output stage, int64[OC] each: bias, multiplier and right shift."""

    bias: np.ndarray
    scale: np.ndarray
    shift: np.ndarray


@dataclass(frozen=True)
class _EntryFormat:
    """Bytes of an entry: bias (signed), then scale of `scale_bits` bits, then the 6-bit shift, then zeros."""

    bias_bytes: int
    scale_bytes: int
    scale_bits: int


_EARLY = _EntryFormat(5, 4, 32)
_FORMATS = {
    (Family.U55, 32): _EARLY,
    (Family.U55, 40): _EARLY,
    (Family.U65, 32): _EARLY,
    (Family.U65, 40): _EARLY,
    (Family.U85, 32): _EntryFormat(4, 4, 31),
    (Family.U85, 48): _EntryFormat(6, 2, 15),
}


def decode_scales(config: NpuConfig, ofm_depth: int, acc_bits: int, streams: Sequence[bytes]) -> Scales:
    """Decode the scale streams of an operation with `ofm_depth` channels.

    Args:
        acc_bits: accumulator width: 32 or 40 on U55 and U65, 32 or 48 on U85.
        streams: one byte string; two on U65-512, whose cores have the even and the odd channels. Bytes after
            the last channel are padding.

    Raises:
        WeightStreamError: a stream is too short, reserved bits are set, or the number of streams is wrong.
    """
    layout = _FORMATS.get((config.family, acc_bits))
    if layout is None:
        raise WeightStreamError(f"{config.name} has no {acc_bits}-bit accumulator")
    cores = config.cores if config.family is Family.U65 else 1
    if len(streams) != cores:
        raise WeightStreamError(f"{len(streams)} scale streams, {config.name} has {cores}")
    entries = np.empty((ofm_depth, _ENTRY_BYTES), np.uint8)
    for core, stream in enumerate(streams):
        entries[core::cores] = _entries(stream, len(entries[core::cores]))
    return _decode(layout, entries)


def _entries(stream: bytes, channels: int) -> np.ndarray:
    size = channels * _ENTRY_BYTES
    if len(stream) < size:
        raise WeightStreamError(
            f"scale stream has {len(stream)} bytes, {channels} channels take {size}", offset=len(stream)
        )
    return np.frombuffer(stream, np.uint8, size).reshape(channels, _ENTRY_BYTES)


def _decode(layout: _EntryFormat, entries: np.ndarray) -> Scales:
    scale_at = layout.bias_bytes
    shift_at = scale_at + layout.scale_bytes
    bias = _little_endian(entries[:, :scale_at])
    sign = np.int64(1) << (8 * layout.bias_bytes - 1)
    scale = _little_endian(entries[:, scale_at:shift_at])
    shift = _little_endian(entries[:, shift_at:])
    reserved = (scale >> layout.scale_bits) | (shift >> 6)
    if reserved.any():
        channel = int(np.flatnonzero(reserved)[0])
        raise WeightStreamError(
            f"reserved bits set in the scale of channel {channel}", offset=channel * _ENTRY_BYTES
        )
    return Scales((bias ^ sign) - sign, scale, shift)


def _little_endian(columns: np.ndarray) -> np.ndarray:
    """Unsigned little-endian value of each row, int64."""
    shifts = 8 * np.arange(columns.shape[1])
    return (columns.astype(np.int64) << shifts).sum(axis=1)

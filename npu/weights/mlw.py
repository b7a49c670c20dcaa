# SPDX-License-Identifier: Apache-2.0
"""The standard weight stream of all Ethos-U: reading the symbols that npu.weights.slices has found.

Everything here works on all slices of a stretch of the stream that have the same coding, so that the cost
of a NumPy call is shared by many weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from npu.errors import WeightStreamError
from npu.weights.bits import BitView
from npu.weights.slices import POPCOUNT, UNARY, WEIGHTS, ZEROS, Coding, Slice, slices

# Weights read together: enough to make NumPy calls cheap, few enough to stay in the cache.
_STRETCH = 1 << 16


def decode_standard(data: bytes, count: int) -> np.ndarray:
    """Decode a standard weight stream.

    Args:
        data: the stream with its padding.
        count: number of weights it must hold.

    Returns:
        int16[count], weight minus its zero point (9-bit signed), in stream order.

    Raises:
        WeightStreamError: truncated or malformed, or another number of weights; with the bit position.
    """
    bits = BitView(data)
    parts = [np.empty(0, np.int16)]
    left = count
    for stretch in _stretches(slices(bits)):
        decoded = _decode_stretch(bits, stretch, left)
        parts += decoded
        left -= sum(map(len, decoded))
    if left:
        raise WeightStreamError(f"weight stream ends {left} weights early, {count} expected", bit=bits.length)
    return np.concatenate(parts)


def _stretches(found: Iterable[Slice]) -> Iterator[list[Slice]]:
    stretch: list[Slice] = []
    weights = 0
    for part in found:
        stretch.append(part)
        weights += part.weights
        if weights >= _STRETCH:
            yield stretch
            stretch, weights = [], 0
    if stretch:
        yield stretch


def _decode_stretch(bits: BitView, stretch: list[Slice], limit: int) -> list[np.ndarray]:
    """Weights of each slice, runs of zeros included; at most `limit` in all."""
    alike: dict[Coding, list[int]] = {}
    for number, part in enumerate(stretch):
        alike.setdefault(part.coding, []).append(number)
    decoded = [np.empty(0, np.int16)] * len(stretch)
    for coding, numbers in alike.items():
        results = _decode_alike(bits, coding, [stretch[number] for number in numbers], limit)
        for number, weights in zip(numbers, results, strict=True):
            decoded[number] = weights
            limit -= len(weights)
    return decoded


@dataclass(frozen=True)
class _Chunks:
    """The chunks of several slices; the last remainders of each slice count as a chunk without symbols.

    Attributes:
        starts: bit position of each, int64.
        owner: number of the slice that each belongs to.
        weighty, zeroed: indices of those that have weights, and of those that have runs.
        after_first: for each of `zeroed`, whether its weight unary comes before.
    """

    starts: np.ndarray
    owner: np.ndarray
    weighty: np.ndarray
    zeroed: np.ndarray
    after_first: np.ndarray


def _chunks(parts: list[Slice]) -> _Chunks:
    kinds = np.frombuffer(b"".join(part.kinds for part in parts), np.uint8)
    zeroed = np.flatnonzero(kinds & ZEROS)
    return _Chunks(
        starts=np.concatenate([np.array(part.starts) for part in parts]),
        owner=np.repeat(np.arange(len(parts)), [len(part.kinds) for part in parts]),
        weighty=np.flatnonzero(kinds & WEIGHTS),
        zeroed=zeroed,
        after_first=kinds[zeroed] & WEIGHTS,
    )


def _decode_alike(bits: BitView, coding: Coding, parts: list[Slice], limit: int) -> list[np.ndarray]:
    """Weights of each slice of `parts`, which have the same coding."""
    totals = np.array([part.weights for part in parts])
    if totals.sum() > limit:
        raise _too_many(parts)
    chunks = _chunks(parts)
    unary = np.zeros(len(chunks.starts), np.int64)  # bits of both unary parts of each chunk
    unary[chunks.zeroed] = coding.zero_unary
    if coding.compressed:
        quotients, counts, length = _read_weight_unary(bits, coding, chunks, unary, totals)
        unary[chunks.weighty] += length
    else:
        quotients, counts = None, _uncompressed_counts(coding, chunks, totals)

    # The remainders of a chunk follow the unary parts of the next one.
    at = np.append(chunks.starts[1:] + unary[1:], 0)
    indices = _fields(bits, at[chunks.weighty], counts, coding.remainder_bits)
    if quotients is not None:
        indices = quotients << coding.weight_div | indices
    weights = _look_up(coding, indices, parts)
    if not coding.has_runs:
        return np.split(weights, np.cumsum(totals)[:-1])

    at[chunks.weighty] += counts * coding.remainder_bits
    quotients, counts = _read_run_unary(bits, coding, chunks, np.array([part.runs for part in parts]))
    runs = quotients << coding.zero_div | _fields(bits, at[chunks.zeroed], counts, coding.zero_div)
    if totals.sum() + runs.sum() > limit:
        raise _too_many(parts)
    return _insert_runs(coding, weights, runs, totals)


def _read_weight_unary(
    bits: BitView, coding: Coding, chunks: _Chunks, gaps: np.ndarray, totals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quotients of all weights; for each chunk the weights it completes and the bits of its weight unary.

    A set bit of unary 0 has a bit in unary 1, behind a gap: its position then counts 1 or 2. A 2 goes on in
    the next position unless the coding confines each weight to one.
    """
    starts = chunks.starts[chunks.weighty]
    first = bits.wide(starts, UNARY)
    ones = _POPCOUNTS[first]
    second = bits.wide(starts + UNARY + gaps[chunks.weighty], UNARY) & (1 << ones) - 1
    low = first & 63
    halves = np.stack([low << 6 | second & 63, first & ~63 | second >> _POPCOUNTS[low] & 63], axis=1)
    symbols = _SYMBOLS[halves].reshape(-1, UNARY)
    if coding.single_position:
        ends, counts = np.ones(symbols.shape, bool), np.full(len(starts), UNARY)
    else:
        ends, counts = symbols != 2, UNARY - _POPCOUNTS[second]
    at, skipped = _ends(ends, counts, chunks.owner[chunks.weighty], totals)
    return symbols.ravel()[at] + 2 * skipped, counts, ones + UNARY


def _read_run_unary(
    bits: BitView, coding: Coding, chunks: _Chunks, totals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Quotients of all run lengths, and the runs that each chunk completes: ones count, a zero ends."""
    starts = chunks.starts[chunks.zeroed]
    if coding.compressed:
        starts = starts + UNARY * chunks.after_first
    words = bits.wide(starts, coding.zero_unary)
    ends = (words[:, None] >> np.arange(coding.zero_unary) & 1) == 0
    counts = coding.zero_unary - _POPCOUNTS[words]
    return _ends(ends, counts, chunks.owner[chunks.zeroed], totals)[1], counts


def _ends(
    ends: np.ndarray, counts: np.ndarray, owner: np.ndarray, totals: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where the symbols of several slices end.

    Args:
        ends: bool[chunks, positions], unary positions that end a symbol.
        counts: how many of them each chunk has. Those after the last symbol of a slice are taken off here.
        owner: slice of each chunk.
        totals: number of symbols of each slice.

    Returns:
        The flat positions of the ends, and the number of positions between each and the one before it.
    """
    chunks = np.bincount(owner)
    last = np.cumsum(chunks) - 1
    first = last + 1 - chunks
    counts[last] -= np.add.reduceat(counts, first) - totals
    ends[last] &= np.cumsum(ends[last], axis=1) <= counts[last][:, None]
    at = np.flatnonzero(ends)
    before = np.empty_like(at)
    before[1:] = at[:-1]
    before[np.cumsum(totals) - totals] = first * ends.shape[1] - 1
    return at, at - before - 1


def _uncompressed_counts(coding: Coding, chunks: _Chunks, totals: np.ndarray) -> np.ndarray:
    """Weights of each chunk: all in one without runs, else every chunk of a slice but its last is full."""
    if not coding.has_runs:
        return totals
    per_slice = np.bincount(chunks.owner[chunks.weighty])
    counts = np.full(len(chunks.weighty), coding.uncompressed_symbols)
    counts[np.cumsum(per_slice) - 1] += totals - per_slice * coding.uncompressed_symbols
    return counts


def _fields(bits: BitView, starts: np.ndarray, counts: np.ndarray, width: int) -> np.ndarray:
    """For each i `counts[i]` consecutive fields of `width` bits from bit `starts[i]` on."""
    before = np.cumsum(counts) - counts
    positions = np.repeat(starts - before * width, counts) + width * np.arange(int(counts.sum()))
    return bits.narrow(positions, width)


def _look_up(coding: Coding, indices: np.ndarray, parts: list[Slice]) -> np.ndarray:
    try:
        return coding.palette.values[indices]
    except IndexError:
        raise WeightStreamError("weight index exceeds nine bits", bit=parts[0].starts[0]) from None


def _insert_runs(
    coding: Coding, weights: np.ndarray, runs: np.ndarray, totals: np.ndarray
) -> list[np.ndarray]:
    """Put a run of zeros after each weight, and one before the first of each slice with a leading run."""
    first = np.cumsum(totals) - totals  # index of the first weight of each slice
    if coding.leading_run:
        at = first + np.arange(len(totals))
        leading, runs = runs[at], np.delete(runs, at)
    else:
        leading = np.zeros(len(totals), np.int64)
    spaces = runs + 1
    spaces[first] += leading
    ends = np.cumsum(spaces)
    result = np.zeros(int(ends[-1]), np.int16)
    result[ends - runs - 1] = weights
    return np.split(result, ends[first[1:] - 1])


def _too_many(parts: list[Slice]) -> WeightStreamError:
    return WeightStreamError("weight stream holds more weights than expected", bit=parts[0].starts[0])


def _symbol_table() -> np.ndarray:
    """uint8[4096, 6]: symbols of six positions, by (bits of unary 0 << 6 | bits of unary 1)."""
    table = np.zeros((64, 64, 6), np.uint8)
    second = np.arange(64)
    for first in range(64):
        rank = 0
        for position in range(6):
            if first >> position & 1:
                table[first, :, position] = 1 + (second >> rank & 1)
                rank += 1
    return table.reshape(4096, 6)


_SYMBOLS = _symbol_table()
_POPCOUNTS = np.frombuffer(POPCOUNT, np.uint8).astype(np.int64)

# SPDX-License-Identifier: Apache-2.0
"""Where the parts of a standard weight stream are: slices, and the chunks of each.

A slice holds up to 32768 Golomb-coded palette indices and, if it uses them, the lengths of the runs of
zeros between the weights. Its body is a sequence of chunks, each

    weight unary 0, zero unary, weight unary 1, weight remainders, zero remainders

where the remainders are those of the chunk before. So the length of a chunk depends on its own unary bits
and on how many symbols the previous one completed. Finding the chunks is therefore sequential, and the loops
here do nothing else; npu.weights.mlw reads the symbols.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from npu.errors import WeightStreamError
from npu.weights.bits import BitView

UNARY = 12
"""Bits of a unary part, except that of runs with a divisor of 3."""
WEIGHTS, ZEROS = 1, 2
"""What a chunk has, in Slice.kinds."""

_ZERO_RUNS_OFF = 6
_END_OF_STREAM = 7
_UNCOMPRESSED = 7
_HEADER_BITS = 3 + 15 + 3 + 1 + 1
_PALETTE_HEADER_BITS = 5 + 5 + 3
_MAX_BALANCE = 8
_MAX_INDEX = 511  # magnitude and sign of a 9-bit weight

POPCOUNT = bytes(value.bit_count() for value in range(1 << UNARY))
_ONES_MASK = tuple((1 << ones) - 1 for ones in range(UNARY + 1))


@dataclass(frozen=True, eq=False)
class Palette:
    """Meaning of indices: `values[index]` is the weight. `bits` is the width of an uncompressed index."""

    values: np.ndarray
    bits: int


@dataclass(frozen=True)
class Coding:
    """Parameters of a slice that decide how its bits are read."""

    weight_div: int
    zero_div: int
    single_position: bool  # "WTRUNC": a weight never spans unary positions
    leading_run: bool
    palette: Palette

    @property
    def compressed(self) -> bool:
        return self.weight_div != _UNCOMPRESSED

    @property
    def has_runs(self) -> bool:
        return self.zero_div != _ZERO_RUNS_OFF

    @property
    def zero_unary(self) -> int:
        """Bits of zero unary in a chunk."""
        return 8 if self.zero_div == 3 else UNARY

    @property
    def uncompressed_symbols(self) -> int:
        """Weights in a chunk of an uncompressed slice."""
        return 8 if self.palette.bits > 5 else 12

    @property
    def remainder_bits(self) -> int:
        """Bits of a weight outside the unary parts."""
        return self.weight_div if self.compressed else self.palette.bits


@dataclass(frozen=True)
class Slice:
    """A slice whose chunks have been found.

    Attributes:
        weights, runs: number of symbols of each kind.
        starts: bit position of each chunk, then of the remainders that follow the last chunk.
        kinds: for each of `starts` the symbols that the chunk has, WEIGHTS and ZEROS; 0 in the last place.
        end: bit position after the slice.
    """

    coding: Coding
    weights: int
    runs: int
    starts: array[int]
    kinds: bytes
    end: int


def slices(bits: BitView) -> Iterator[Slice]:
    """All slices; after an end marker the stream may go on at the next byte."""
    position, ended, palette = 0, True, None
    while position + 3 <= bits.length:
        if bits.field(position, 3) == _END_OF_STREAM:
            position, ended = (position + 3 + 7) // 8 * 8, True
            continue
        found = _find_slice(bits, position, palette)
        position, ended, palette = found.end, False, found.coding.palette
        yield found
    if not ended:
        raise WeightStreamError("weight stream has no end marker", bit=bits.length)


def _find_slice(bits: BitView, position: int, palette: Palette | None) -> Slice:
    """Read the header at `position` and find the chunks. `palette` stays in force if there is no new one."""
    word = bits.field(position, _HEADER_BITS)
    zero_div, weights, weight_div = word & 7, (word >> 3 & 0x7FFF) + 1, word >> 18 & 7
    single_position, new_palette = bool(word >> 21 & 1), bool(word >> 22)
    body = position + _HEADER_BITS
    if body > bits.length:
        raise WeightStreamError("weight stream ends in a slice header", bit=position)
    if zero_div in (4, 5) or weight_div == 6:
        raise WeightStreamError(f"reserved divisor (zero {zero_div}, weight {weight_div})", bit=position)
    if new_palette:
        palette, body = _read_palette(bits, body)
    if palette is None:
        raise WeightStreamError("first slice has no palette", bit=position)
    coding = Coding(weight_div, zero_div, single_position, new_palette, palette)
    try:
        found = _find_chunks(bits, coding, body, weights)
    except IndexError:
        raise WeightStreamError("weight stream ends inside a slice", bit=position) from None
    if found.end > bits.length:
        raise WeightStreamError("weight stream ends inside a slice", bit=position)
    return found


def _read_palette(bits: BitView, position: int) -> tuple[Palette, int]:
    word = bits.field(position, _PALETTE_HEADER_BITS)
    offset, size, width = word & 31, word >> 5 & 31, (word >> 10) + 2
    size += size > 0
    entries = position + _PALETTE_HEADER_BITS
    end = entries + size * width
    if end > bits.length:
        raise WeightStreamError("weight stream ends in a palette", bit=position)
    return _palette(offset, width, bits.narrow(entries + width * np.arange(size), width).tobytes()), end


@lru_cache(maxsize=256)
def _palette(offset: int, width: int, entries: bytes) -> Palette:
    """Indices mean `entries` (uint16) first, then the values from `offset` on; their bit 0 is the sign."""
    table = np.frombuffer(entries, np.uint16).astype(np.int16)
    coded = np.concatenate([table, np.arange(offset, _MAX_INDEX + 1, dtype=np.int16)])
    values = np.where(coded & 1, -(coded >> 1), coded >> 1).astype(np.int16)
    return Palette(values, (len(table) - 1).bit_length() if len(table) else width)


def _find_chunks(bits: BitView, coding: Coding, position: int, weights: int) -> Slice:
    """Find the chunks of a slice whose body is at `position`. Raises IndexError when the stream ends."""
    if coding.has_runs:
        return _find_chunks_with_runs(bits, coding, position, weights)
    if coding.compressed:
        return _find_chunks_without_runs(bits, coding, position, weights)
    # Without unary parts all chunks are alike: one array of indices.
    end = position + weights * coding.remainder_bits
    return Slice(coding, weights, 0, array("q", (position, position)), bytes((WEIGHTS, 0)), end)


def _find_chunks_without_runs(bits: BitView, coding: Coding, position: int, weights: int) -> Slice:
    windows, popcount, masks = bits.windows, POPCOUNT, _second_masks(coding)
    divisor = coding.weight_div
    starts = array("q")
    note = starts.append
    done = completed = 0
    while done < weights:
        note(position)
        word = windows[position >> 4] >> (position & 15)
        ones = popcount[word & 0xFFF]
        position += UNARY + ones + completed * divisor
        completed = UNARY - popcount[word >> UNARY & masks[ones]]
        done += completed
    note(position)
    kinds = bytes((WEIGHTS,)) * (len(starts) - 1) + b"\0"
    return Slice(coding, weights, 0, starts, kinds, position + (completed - done + weights) * divisor)


def _find_chunks_with_runs(bits: BitView, coding: Coding, position: int, weights: int) -> Slice:
    """Weights and runs keep within a few symbols of each other: a chunk may lack those that are ahead."""
    windows, popcount, masks = bits.windows, POPCOUNT, _second_masks(coding)
    compressed, plain_symbols, weight_bits = (
        coding.compressed,
        coding.uncompressed_symbols,
        coding.remainder_bits,
    )
    zero_unary, zero_bits = coding.zero_unary, coding.zero_div
    zero_mask = (1 << zero_unary) - 1
    runs = weights + coding.leading_run
    starts = array("q")
    kinds = bytearray()
    weights_done = runs_done = pending = 0
    while weights_done < weights or runs_done < runs:
        kind = WEIGHTS if weights_done - runs_done < _MAX_BALANCE and weights_done < weights else 0
        if weights_done >= runs_done and runs_done < runs:
            kind |= ZEROS
        starts.append(position)
        kinds.append(kind)
        word = windows[position >> 4] >> (position & 15)
        position += pending
        pending = 0
        if kind & WEIGHTS:
            completed = plain_symbols
            if compressed:
                ones = popcount[word & 0xFFF]
                word >>= UNARY
                position += UNARY + ones
                completed = UNARY - popcount[(word >> zero_unary if kind & ZEROS else word) & masks[ones]]
            if completed > weights - weights_done:
                completed = weights - weights_done
            weights_done += completed
            pending = completed * weight_bits
        if kind & ZEROS:
            position += zero_unary
            completed = zero_unary - popcount[word & zero_mask]
            if completed > runs - runs_done:
                completed = runs - runs_done
            runs_done += completed
            pending += completed * zero_bits
    starts.append(position)
    kinds.append(0)
    return Slice(coding, weights, runs, starts, bytes(kinds), position + pending)


def _second_masks(coding: Coding) -> tuple[int, ...]:
    """Bits of unary 1 that can mark a position as completing no weight, by the ones in unary 0."""
    return (0,) * (UNARY + 1) if coding.single_position else _ONES_MASK

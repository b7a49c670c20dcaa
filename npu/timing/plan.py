# SPDX-License-Identifier: Apache-2.0
"""An operation as the time line sees it: a sequence of blocks with what each costs and moves.

Blocks follow each other as in the hardware: rows outside, columns, depth inside.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from npu.config import Family, NpuConfig
from npu.errors import NotModelled
from npu.featuremap import BRICK, FeatureMap
from npu.isa import Layout
from npu.operation import Operation
from npu.timing.compute import (
    MacArray,
    OutputStage,
    multiply_accumulates,
    weight_decoder_cycles,
)
from npu.timing.geometry import (
    Span,
    ceil_div,
    has_weights,
    ifm_block_depth,
    is_matmul,
    is_reduction,
    spans,
    sub_kernel_taps,
)
from npu.timing.hardware import IFM_BUFFER_BYTES, Pipeline
from npu.timing.traffic import IfmWindows, map_beats, on_port, resize_beats

_T = TypeVar("_T")
_Place = tuple[int, ...]
"""Blocks, by kind, over the depth of one place in rows and columns."""
_Row = tuple[_Place, ...]

_MANY = 4
_MAX_PREFETCH = 8
MAX_BLOCKS = 1 << 16
"""Of one operation; what compilers make has some hundreds."""


@dataclass(frozen=True)
class Block:
    """One OFM block.

    Attributes:
        mac, output: cycles of MAC array and output stage.
        last_pass: cycles before the end of the MAC work from which on the output stage finds finished
            channels; `output_tail` is what it still has to do after the MAC array is done.
        reads: beats of each feature map in `KernelPlan.regions`; 0 where the input buffer already holds them.
        store: beats of the result.
        weights: share of the operation's weights and scales.
    """

    mac: float
    output: float
    last_pass: float
    output_tail: float
    reads: tuple[float, ...]
    store: float
    weights: float


@dataclass(frozen=True)
class KernelPlan:
    """A convolution, pool, elementwise or resize operation.

    Attributes:
        kinds: the different blocks, each with how often it occurs.
        runs: the blocks as numbers of kinds: sequences, each with how often it follows itself.
        regions: of the feature maps that are read.
        steps: parts of a block that the MAC array can start on when they have arrived (sub-kernels times IFM
            blocks or bricks).
        stepwise: the input buffer holds two steps rather than two blocks.
        fill: beats of a window that the MAC array waits for at least, if there are so many.
        last_step: share of a block's MAC cycles in its last step.
        windows_ahead: windows that the input buffer holds when not stepwise.
        read_burst, write_burst: beats of feature-map transactions.
        weight_streams, scale_bytes: bytes; read again for each place in rows and columns.
        weight_region, scale_region: where those are.
    """

    op: Operation
    kinds: tuple[tuple[Block, int], ...]
    runs: list[tuple[tuple[int, ...], int]]
    regions: tuple[int, ...]
    steps: int
    stepwise: bool
    fill: float
    last_step: float
    windows_ahead: int
    read_burst: float
    write_burst: float
    weight_streams: tuple[int, ...]
    scale_bytes: int
    weight_region: int
    scale_region: int
    macs: int
    decoder_cycles: float


def plan_kernel(config: NpuConfig, op: Operation, pipeline: Pipeline) -> KernelPlan:
    """Cut an operation into blocks.

    Raises:
        NotModelled: more than MAX_BLOCKS of them.
    """
    number = math.prod(map(ceil_div, op.ofm_shape, op.ofm_block))
    if number > MAX_BLOCKS:
        raise NotModelled(f"operation of {number} blocks (at most {MAX_BLOCKS} are timed)")
    return _Planner(config, op, pipeline).plan()


class _Planner:
    def __init__(self, config: NpuConfig, op: Operation, pipeline: Pipeline):
        self._config, self._op = config, op
        self._family = config.family
        self._pipeline = pipeline
        self._array = MacArray(config, op, pipeline)
        self._output = OutputStage(config, op)
        height, width, depth = op.ofm_shape
        self._rows = spans(height, op.ofm_block[0])
        self._columns = spans(width, op.ofm_block[1])
        self._depths = spans(depth, op.ofm_block[2])
        self._volume = height * width * depth
        self._taps = sub_kernel_taps(op.kernel)
        self._is_conv = op.command.name == "OP_CONV"
        self._steps = self._count_steps()
        self._store = map_beats(op.ofm, self._pipeline.beat_bytes) if on_port(op.ofm) else 0
        self._windowed = op.command.name in ("OP_CONV", "OP_DEPTHWISE", "OP_POOL")
        self._maps = list(self._read_maps())
        self._second = [map_beats(fm, pipeline.beat_bytes) / self._volume for fm in self._maps[1:]]
        self._kinds: list[Block] = []
        self._numbers: dict[tuple[int, int, int, tuple[float, ...]], int] = {}

    def plan(self) -> KernelPlan:
        op, config = self._op, self._config
        streams, scale_bytes = _weight_bytes(config, op)
        places = len(self._rows) * len(self._columns)
        ahead, fits = self._input_buffer()
        split = len(self._taps) > 1
        in_steps = self._family is not Family.U85 or not fits or split
        matmul = is_matmul(op) and op.ifm2 is not None
        rows = self._windowed_rows() if self._windowed else self._streamed_rows()
        runs = list(_runs(rows))
        occurrences: Counter[int] = Counter()
        for sequence, times in runs:
            for kind in sequence:
                occurrences[kind] += times
        return KernelPlan(
            op=op,
            kinds=tuple((block, occurrences[kind]) for kind, block in enumerate(self._kinds)),
            runs=_joined(runs),
            regions=tuple(fm.region for fm in self._maps),
            steps=self._steps,
            stepwise=self._is_conv and self._steps > 1 and in_steps,
            fill=0.0 if in_steps else self._fill(),
            last_step=self._taps[-1] * len(self._taps) / sum(self._taps) / self._steps,
            windows_ahead=ahead,
            read_burst=self._read_burst(),
            write_burst=self._write_burst(),
            weight_streams=streams,
            scale_bytes=scale_bytes,
            weight_region=op.ifm2.region if matmul and op.ifm2 else op.weights.region if op.weights else 0,
            scale_region=op.weights.scale_region if op.weights else 0,
            macs=multiply_accumulates(op),
            decoder_cycles=places * weight_decoder_cycles(config, op, max(streams, default=0)),
        )

    def _count_steps(self) -> int:
        steps, op = len(self._taps), self._op
        if self._is_conv:
            return steps * ceil_div(op.ifm.shape[2], ifm_block_depth(self._config, op))
        windowed = op.command.name in ("OP_DEPTHWISE", "OP_POOL")
        if windowed and op.ifm.layout is Layout.NHCWB16:
            return steps * ceil_div(min(op.ofm_block[2], op.ofm_shape[2]), BRICK)
        return steps

    def _input_buffer(self) -> tuple[int, bool]:
        """(Windows that the input buffer holds, a whole window fits)."""
        if self._family is not Family.U85:
            return 2, True
        op, kernel = self._op, self._op.kernel
        high = min(op.ofm_block[0] * kernel.stride_y + kernel.height - 1, op.ifm.shape[0])
        wide = min(op.ofm_block[1] * kernel.stride_x + kernel.width - 1, op.ifm.shape[1])
        depth = op.ifm.shape[2] if self._is_conv else op.ofm_block[2]
        size = high * wide * ceil_div(depth, BRICK) * BRICK * op.ifm.dtype.itemsize
        held = IFM_BUFFER_BYTES[self._config.macs] // max(1, size)
        return max(2, min(_MAX_PREFETCH, held)), held > 0

    def _fill(self) -> float:
        """Beats of the U85's input buffer that have to be there before work on a window begins."""
        buffer = IFM_BUFFER_BYTES[self._config.macs]
        return self._pipeline.start_fill * buffer / self._pipeline.beat_bytes

    def _read_burst(self) -> float:
        """Beats: a run of bricks, or of NHWC bytes that one block needs and that lie side by side."""
        op, pipeline = self._op, self._pipeline
        width = min(op.ofm_block[1], op.ofm_shape[1])
        if op.command.name in ("OP_CONV", "OP_DEPTHWISE", "OP_POOL"):
            width = min((width - 1) * op.kernel.stride_x + op.kernel.width, op.ifm.shape[1])
        size, depth = op.ifm.dtype.itemsize, op.ifm.shape[2]
        if op.ifm.layout is Layout.NHCWB16:
            run = width * BRICK * size
        elif depth > BRICK:
            run = min(ifm_block_depth(self._config, op) if self._is_conv else op.ofm_block[2], depth) * size
        else:
            run = width * depth * size
        return min(pipeline.feature_map_burst, _beats_of_run(run, pipeline.beat_bytes))

    def _write_burst(self) -> float:
        op, pipeline = self._op, self._pipeline
        if op.ofm.layout is Layout.NHWC:
            return pipeline.nhwc_write_burst
        run = op.ofm_block[1] * BRICK * op.ofm.dtype.itemsize
        return min(pipeline.feature_map_burst, run / pipeline.beat_bytes)

    def _read_maps(self) -> Iterator[FeatureMap]:
        """Feature maps that blocks read; a windowed operation's IFM always, without beats if chained."""
        op = self._op
        if self._windowed or on_port(op.ifm):
            yield op.ifm
        if op.ifm2 is not None and on_port(op.ifm2) and not is_matmul(op):
            yield op.ifm2

    # --- blocks ---------------------------------------------------------------------------------------------

    def _windowed_rows(self) -> Iterator[_Row]:
        ifm = IfmWindows(self._config, self._op, self._rows, self._columns, self._pipeline.beat_bytes)
        places: dict[tuple[int, int, int, float], _Place] = {}
        known: dict[tuple[int, tuple[Span, ...]], _Row] = {}
        for row, (_, height) in enumerate(self._rows):
            key = height, ifm.row_key(row)
            if key not in known:
                known[key] = tuple(
                    self._place(places, (height, width, ifm.beats(row, column), ifm.repeats(row, column)))
                    for column, (_, width) in enumerate(self._columns)
                )
            yield known[key]

    def _place(
        self, known: dict[tuple[int, int, int, float], _Place], key: tuple[int, int, int, float]
    ) -> _Place:
        """The depth blocks of a place of (height, width, beats of the first, share of it of the others)."""
        if key not in known:
            known[key] = self._depth_blocks(*key)
        return known[key]

    def _depth_blocks(self, height: int, width: int, once: float, repeats: float) -> _Place:
        """Blocks over the depth: all are alike but the first, which reads the window, and the last."""
        op, again = self._op, once * repeats
        per_depth = is_reduction(op)

        def kind(number: int) -> int:
            depth = self._depths[number][1]
            beats = (again if number else once) if per_depth else once * depth / op.ofm_shape[2]
            more = (each * height * width * depth for each in self._second)
            return self._kind(height, width, depth, (beats, *more))

        number = len(self._depths)
        if number < 3:
            return tuple(kind(index) for index in range(number))
        return kind(0), *(kind(1),) * (number - 2), kind(number - 1)

    def _streamed_rows(self) -> Iterator[_Row]:
        """Elementwise and resize: every element of the operands once."""
        op, beat = self._op, self._pipeline.beat_bytes
        if op.command.name == "OP_RESIZE":
            totals = [resize_beats(op, beat) for _ in self._maps]
        else:
            totals = [map_beats(fm, beat) for fm in self._maps]

        def kind(height: int, width: int, depth: int) -> int:
            share = height * width * depth / self._volume
            return self._kind(height, width, depth, tuple(share * beats for beats in totals))

        known: dict[int, _Row] = {}
        for _, height in self._rows:
            if height not in known:
                known[height] = tuple(
                    tuple(kind(height, width, depth) for _, depth in self._depths)
                    for _, width in self._columns
                )
            yield known[height]

    def _kind(self, height: int, width: int, depth: int, reads: tuple[float, ...]) -> int:
        """Number of the kind of a block."""
        key = height, width, depth, reads
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._kinds)
            self._kinds.append(self._make(height, width, depth, reads))
        return number

    def _make(self, height: int, width: int, depth: int, reads: tuple[float, ...]) -> Block:
        mac = self._array.cycles(height, width, depth)
        output = self._output.cycles(height, width, depth)
        last_pass, tail = 0.0, output
        if self._family is Family.U85 and mac:
            # Channels are finished one microblock after the other in the last pass over the input.
            steps = self._array.steps_of_depth(depth)
            passes = self._steps if self._is_conv else 1
            last_pass, tail = mac / passes * (1 - 1 / steps), output / steps
        return Block(
            mac=mac,
            output=output,
            last_pass=last_pass,
            output_tail=tail if last_pass else 0.0,
            reads=reads,
            store=self._store * height * width * depth / self._volume,
            weights=depth / self._op.ofm_shape[2],
        )


def _runs(rows: Iterable[_Row]) -> Iterator[tuple[tuple[int, ...], int]]:
    """What follows itself: rows if there are enough, else places of a row, else blocks of a place."""
    for row, times in _repeats(rows):
        if times >= _MANY:
            yield tuple(itertools.chain.from_iterable(row)), times
            continue
        for _ in range(times):
            for place, number in _repeats(row):
                if number >= _MANY:
                    yield place, number
                else:
                    yield from (((kind,), count) for _ in range(number) for kind, count in _repeats(place))


def _joined(runs: Iterable[tuple[tuple[int, ...], int]]) -> list[tuple[tuple[int, ...], int]]:
    """Neighbours that are not repeated as one sequence."""
    result = []
    for once, group in itertools.groupby(runs, key=lambda run: run[1] == 1):
        if once:
            result.append((tuple(itertools.chain.from_iterable(sequence for sequence, _ in group)), 1))
        else:
            result += group
    return result


def _repeats(items: Iterable[_T]) -> Iterator[tuple[_T, int]]:
    return ((item, sum(1 for _ in same)) for item, same in itertools.groupby(items))


def _beats_of_run(run: int, beat: int) -> float:
    """Beats of a run of bytes: whole ones, or the mean over all alignments."""
    return run / beat if run % beat == 0 else (run - 1) / beat + 1


def _weight_bytes(config: NpuConfig, op: Operation) -> tuple[tuple[int, ...], int]:
    """Bytes of each core's weight stream, and of all scales."""
    if is_matmul(op) and op.ifm2 is not None:
        return (op.ifm2.size,), 0
    if not has_weights(op) or op.weights is None:
        return (), 0
    scale_streams = config.cores if config.family is Family.U65 else 1
    return (
        tuple(length for _, length in op.weights.streams[: config.cores]),
        sum(length for _, length in op.weights.scale_streams[:scale_streams]),
    )

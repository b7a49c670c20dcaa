# SPDX-License-Identifier: Apache-2.0
"""An operation as the time line sees it: a sequence of blocks with what each costs and moves.

Blocks follow each other as in the hardware: rows outside, columns, depth inside.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

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

_MAX_PREFETCH = 8
MAX_BLOCKS = 1 << 16
"""Of one operation; what compilers make has some hundreds."""


@dataclass(frozen=True)
class Read:
    """Beats of one feature map that a block needs."""

    region: int
    beats: float


@dataclass(frozen=True)
class Block:
    """One OFM block.

    Attributes:
        mac, output: cycles of MAC array and output stage.
        last_pass: cycles before the end of the MAC work from which on the output stage finds finished
            channels; `output_tail` is what it still has to do after the MAC array is done.
        reads: per feature map; empty when the input buffer already holds the window.
        store: beats of the result.
        weights: share of the operation's weights and scales.
    """

    mac: float
    output: float
    last_pass: float
    output_tail: float
    reads: tuple[Read, ...]
    store: float
    weights: float


@dataclass(frozen=True)
class KernelPlan:
    """A convolution, pool, elementwise or resize operation.

    Attributes:
        blocks: in order; equal ones are one object.
        counts: each different block with how often it occurs.
        steps: parts of a block that the MAC array can start on when they have arrived (sub-kernels times IFM
            blocks or bricks).
        stepwise: the input buffer holds two steps rather than two blocks.
        last_step: share of a block's MAC cycles in its last step.
        windows_ahead: windows that the input buffer holds when not stepwise.
        read_burst, write_burst: beats of feature-map transactions.
        weight_streams, scale_bytes: bytes; read again for each place in rows and columns.
        weight_region, scale_region: where those are.
    """

    op: Operation
    blocks: tuple[Block, ...]
    counts: tuple[tuple[Block, int], ...]
    steps: int
    stepwise: bool
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
        self._memo: dict[tuple[int, int, int, tuple[Read, ...]], Block] = {}

    def plan(self) -> KernelPlan:
        op, config = self._op, self._config
        streams, scale_bytes = _weight_bytes(config, op)
        places = len(self._rows) * len(self._columns)
        ahead, fits = self._input_buffer()
        split = len(self._taps) > 1
        in_steps = self._family is not Family.U85 or not fits or split
        matmul = is_matmul(op) and op.ifm2 is not None
        blocks = tuple(self._blocks())
        occurrences = Counter(map(id, blocks))
        return KernelPlan(
            op=op,
            blocks=blocks,
            counts=tuple((block, occurrences[id(block)]) for block in self._memo.values()),
            steps=self._steps,
            stepwise=self._is_conv and self._steps > 1 and in_steps,
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
        high = op.ofm_block[0] * kernel.stride_y + kernel.height - 1
        wide = op.ofm_block[1] * kernel.stride_x + kernel.width - 1
        depth = op.ifm.shape[2] if self._is_conv else op.ofm_block[2]
        size = high * wide * ceil_div(depth, BRICK) * BRICK * op.ifm.dtype.itemsize
        held = IFM_BUFFER_BYTES[self._config.macs] // max(1, size)
        return max(2, min(_MAX_PREFETCH, held)), held > 0

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

    # --- blocks ---------------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[Block]:
        windowed = self._op.command.name in ("OP_CONV", "OP_DEPTHWISE", "OP_POOL")
        return self._windowed_blocks() if windowed else self._streamed_blocks()

    def _windowed_blocks(self) -> Iterator[Block]:
        op = self._op
        beat = self._pipeline.beat_bytes
        ifm = IfmWindows(self._config, op, self._rows, self._columns, beat)
        per_depth = is_reduction(op)
        second = self._second_map()
        for row, (_, height) in enumerate(self._rows):
            for column, (_, width) in enumerate(self._columns):
                once = ifm.beats(row, column)
                again = once * ifm.repeats(row, column)
                for number, (_, depth) in enumerate(self._depths):
                    beats = (again if number else once) if per_depth else once * depth / op.ofm_shape[2]
                    reads = (Read(op.ifm.region, beats),) if beats else ()
                    yield self._block(height, width, depth, reads, second)

    def _second_map(self) -> tuple[int, float] | None:
        """Region and beats an element of the result of an accumulator loaded from IFM2."""
        op = self._op
        if op.ifm2 is None or is_matmul(op) or not on_port(op.ifm2):
            return None
        return op.ifm2.region, map_beats(op.ifm2, self._pipeline.beat_bytes) / self._volume

    def _streamed_blocks(self) -> Iterator[Block]:
        """Elementwise and resize: every element of the operands once."""
        op, beat = self._op, self._pipeline.beat_bytes
        if op.command.name == "OP_RESIZE":
            totals = [(op.ifm.region, resize_beats(op, beat))] if on_port(op.ifm) else []
        else:
            operands: list[FeatureMap | None] = [op.ifm, op.ifm2]
            totals = [(fm.region, map_beats(fm, beat)) for fm in operands if fm is not None and on_port(fm)]
        for _, height in self._rows:
            for _, width in self._columns:
                for _, depth in self._depths:
                    share = height * width * depth / self._volume
                    reads = tuple(Read(region, beats * share) for region, beats in totals)
                    yield self._block(height, width, depth, reads, None)

    def _block(
        self,
        height: int,
        width: int,
        depth: int,
        reads: tuple[Read, ...],
        second: tuple[int, float] | None,
    ) -> Block:
        if second is not None:
            reads = (*reads, Read(second[0], second[1] * height * width * depth))
        key = height, width, depth, reads
        block = self._memo.get(key)
        if block is None:
            block = self._memo[key] = self._make(height, width, depth, reads)
        return block

    def _make(self, height: int, width: int, depth: int, reads: tuple[Read, ...]) -> Block:
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

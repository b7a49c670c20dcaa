# SPDX-License-Identifier: Apache-2.0
"""The time line: command processor, DMA, input fetch, MAC array and output stage working side by side.

The command processor reads the stream through its own small prefetch and issues operations into queues; each
operation's blocks then pass through fetch, MAC array and output stage. Operations are computed in the order
of the stream, each as early as its queue, its block dependency, the buffers and the ports allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from npu.config import Family, NpuConfig
from npu.isa import Storage, WeightCoding
from npu.operation import DmaTransfer
from npu.timing.hardware import READ_BUFFERS, SCALE_BUFFER_BYTES, Pipeline
from npu.timing.plan import Block, KernelPlan, Read
from npu.timing.ports import Port, Rate, stream_rate
from npu.timing.profile import EXT, SRAM, MemoryMap, TimingProfile

_INDEX_BYTES = 4


@dataclass
class Usage:
    """What an operation kept busy, in cycles; beats by (port, write)."""

    mac: float = 0.0
    output: float = 0.0
    ifm: float = 0.0
    weights: float = 0.0
    store: float = 0.0
    scale_wait: float = 0.0
    dma_wait: float = 0.0
    beats: dict[tuple[int, bool], float] = field(default_factory=dict)

    def move(self, port: int, write: bool, beats: float) -> None:
        key = port, write
        self.beats[key] = self.beats.get(key, 0.0) + beats


@dataclass(frozen=True)
class Span:
    """When an operation ran: `start` is its first request, `end` its last response."""

    start: float
    end: float
    usage: Usage


@dataclass
class _Previous:
    """What the next operation depends on."""

    done: list[float]
    output_end: float
    shared_ram: tuple[int, ...]


class Timeline:
    """Time of one run.

    Args:
        config: the NPU.
        profile, memory: timing of the two ports, and which of them each region is behind.
        pipeline: depths and delays.
    """

    def __init__(self, config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline):
        self._config, self._memory = config, memory
        self._adapters = profile.ports
        self.pipeline = pipeline
        self._is_85 = config.family is Family.U85
        self._wide = 2.0 if config.sram_ports > 2 else 1.0
        self.ports = (self._port(SRAM), self._port(EXT))
        self._rates: dict[tuple[int, float, bool, float], Rate] = {}
        self._time = 0.0
        self._words = 0
        self._burst_words = self.pipeline.command_burst * self.pipeline.beat_bytes // 4
        self._arrivals: list[float] = []
        self._consumed: list[float] = []
        self._kernels: list[float] = []
        self._transfers: list[float] = []
        self._fetch_free = self._mac_free = self._output_free = 0.0
        self._weights_fetched = 0.0
        self._waited_for_dma = 0.0
        self._previous: _Previous | None = None

    def _port(self, number: int) -> Port:
        width = (self._config.sram_ports, self._config.ext_ports)[number] or 1
        side_by_side = self._wide if number == SRAM else 1.0
        return Port(
            self._adapters[number],
            bandwidth=width,
            adapters=2 if self._is_85 and number == SRAM else 1,
            permitted=(side_by_side, side_by_side * self.pipeline.write_efficiency),
            burst=self.pipeline.ext_burst,
        )

    def _rate(self, port: int, burst: float, *, write: bool = False, buffer: float = 0) -> Rate:
        """Rate of a stream; `buffer` is the beats that its reader has room for, 0 enough."""
        key = port, burst, write, buffer
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = self._make_rate(port, burst, write, buffer)
        return rate

    def _make_rate(self, port: int, burst: float, write: bool, buffer: float) -> Rate:
        pipeline, timing = self.pipeline, self._adapters[port]
        burst = min(burst, pipeline.sram_burst if port == SRAM else pipeline.ext_burst)
        side_by_side = self._wide if port == SRAM else 1.0
        rate = stream_rate(
            timing,
            burst=burst,
            top=side_by_side,
            write=write,
            permitted=side_by_side * (pipeline.write_efficiency if write else 1.0),
            pulses=pipeline.adapter_pulses,
        )
        if not buffer or write or not timing.rlatency:
            return rate
        return Rate(min(rate.beats, buffer / (timing.rlatency + burst)), rate.slots, rate.write, rate.top)

    # --- command processor ----------------------------------------------------------------------------------

    def consume(self, words: int) -> None:
        """Read command words, one a cycle once they have arrived."""
        while words:
            place = self._words % self._burst_words
            if not place:
                self._time = max(self._time, self._arrival(self._words // self._burst_words))
            taken = min(words, self._burst_words - place)
            self._time += taken
            self._words += taken
            words -= taken
            if not self._words % self._burst_words:
                self._consumed.append(self._time)

    def _arrival(self, number: int) -> float:
        """When burst `number` of the stream is there: it was asked for when an earlier one was used up."""
        ahead, port = self.pipeline.command_prefetch, self._memory.commands
        while len(self._arrivals) <= number:
            count = len(self._arrivals)
            asked = self._consumed[count - ahead] if count >= ahead else 0.0
            burst = self.pipeline.command_burst
            served = self.ports[port].serve(asked, burst, self._rate(port, burst))
            self._arrivals.append(served + self._adapters[port].rlatency)
        return self._arrivals[number]

    def trim_commands(self, words: int) -> None:
        """The last burst may be shorter than what was booked."""
        bursts = -(-words // self._burst_words) * self._burst_words
        self.ports[self._memory.commands].read -= (bursts - words) * 4 / self.pipeline.beat_bytes

    def wait_for_transfers(self, unfinished: int) -> None:
        """DMA_WAIT: until at most so many are unfinished."""
        before = self._time
        self._time = max(self._time, _but(self._transfers, unfinished))
        self._waited_for_dma += self._time - before

    def wait_for_kernels(self, unfinished: int) -> None:
        """KERNEL_WAIT."""
        self._time = max(self._time, _but(self._kernels, unfinished))

    def finish(self) -> float:
        """STOP: when everything is done."""
        return max([self._time, *self._kernels[-8:], *self._transfers[-8:]])

    # --- DMA ------------------------------------------------------------------------------------------------

    def transfer(self, dma: DmaTransfer) -> Span:
        """DMA_START."""
        pipeline = self.pipeline
        self._time = max(self._time, _but(self._transfers, pipeline.dma_queue - 1))
        start = max(self._time + pipeline.dma_start, self._transfers[-1] if self._transfers else 0.0)
        usage = Usage()
        start = self._read_indices(dma, start, usage)
        beats = dma.length * dma.size0 * dma.size1 / pipeline.beat_bytes
        end = first = start
        if not dma.source.internal:
            port = self._memory.regions[dma.source.region]
            latency = self._adapters[port].rlatency
            # Other readers share the transactions in flight with it fairly, so they are not charged.
            rate = self._rate(port, pipeline.ext_burst, buffer=self._buffers("dma"))
            end = self.ports[port].serve(start, beats, Rate(rate.beats, 0.0, False, rate.top)) + latency
            first = start + latency
            usage.move(port, False, beats)
        if not dma.destination.internal:
            port = self._memory.regions[dma.destination.region]
            stored = self.ports[port].serve(first, beats, self._rate(port, pipeline.ext_burst, write=True))
            end = max(end, stored + self._adapters[port].wlatency)
            usage.move(port, True, beats)
        self._transfers.append(end)
        return Span(start, end, usage)

    def _read_indices(self, dma: DmaTransfer, start: float, usage: Usage) -> float:
        """A gather or scatter reads an int32 index for each row first."""
        if not (dma.source.indexed or dma.destination.indexed):
            return start
        port = self._memory.regions[dma.index_region]
        beats = dma.size0 * dma.size1 * _INDEX_BYTES / self.pipeline.beat_bytes
        rate = self._rate(port, self.pipeline.ext_burst, buffer=self._buffers("dma"))
        usage.move(port, False, beats)
        return self.ports[port].serve(start, beats, rate) + self._adapters[port].rlatency

    def _buffers(self, name: str, efficiency: float | None = None) -> float:
        """Beats of a U85's read buffer that count; 0 where the stream is not limited by one."""
        if not self._is_85:
            return 0
        share = self.pipeline.buffer_efficiency if efficiency is None else efficiency
        return share * getattr(READ_BUFFERS[self._config.macs], name)

    # --- kernels --------------------------------------------------------------------------------------------

    def kernel(self, plan: KernelPlan, shared_ram: tuple[int, ...]) -> Span:
        """An operation other than DMA.

        Args:
            shared_ram: registers that lay out the shared RAM of U55 and U65; changing them waits for the
                accumulators.
        """
        self._time = max(self._time, _but(self._kernels, self.pipeline.kernel_queue - 1))
        start = self._time + self.pipeline.op_start
        previous = self._previous
        if previous is not None and previous.shared_ram != shared_ram:
            self._fetch_free = max(self._fetch_free, previous.output_end)
        run = _KernelRun(self, plan, start)
        run.usage.dma_wait, self._waited_for_dma = self._waited_for_dma, 0.0
        for block in plan.blocks:
            run.block(block)
        self._previous = _Previous(run.done, run.output_ends[-1], shared_ram)
        self._kernels.append(run.done[-1])
        return Span(start, run.done[-1], run.usage)


def _but(ends: Sequence[float], unfinished: int) -> float:
    """When all but `unfinished` of the operations have ended; 0 if there are no more than that."""
    recent = ends[-16:]
    return sorted(recent)[-1 - unfinished] if len(ends) > unfinished else 0.0


class _KernelRun:
    """One operation passing through the pipeline of a `Timeline`, block by block."""

    def __init__(self, timeline: Timeline, plan: KernelPlan, start: float):
        self._line, self._plan, self._start = timeline, plan, start
        self._pipeline = timeline.pipeline
        op, adapters, regions = plan.op, timeline._adapters, timeline._memory.regions
        self._dependency = 0.0
        self._number = 0
        self._windows: list[int] = []
        self._mac_ends: list[float] = []
        self.output_ends: list[float] = []
        self.done: list[float] = []
        stream = op.command.name in ("OP_ELEMENTWISE", "OP_RESIZE")
        self._buffer = timeline._buffers("ifm_stream" if stream else "ifm")
        self._chained = op.ofm.storage is Storage.CHAINED
        self._out = regions[op.ofm.region] if not self._chained else SRAM
        self._response = 0.0 if self._chained else adapters[self._out].wlatency + self._pipeline.drain
        self._out_rate = timeline._rate(self._out, plan.write_burst, write=True)
        self._last_step = self._service = 0.0
        self._latency = 0
        if plan.weight_streams:
            self._prepare_weights()
        self._output_cycles = {id(block): self._output_time(block) for block, _ in plan.counts}
        self.usage = self._count()

    def _count(self) -> Usage:
        """Busy time and beats of all blocks together, as far as they do not depend on waiting."""
        usage, regions = Usage(), self._line._memory.regions
        for block, number in self._plan.counts:
            usage.mac += number * block.mac
            usage.output += number * block.output
            usage.scale_wait += number * (self._output_cycles[id(block)] - block.output)
            for read in block.reads:
                usage.move(regions[read.region], False, number * read.beats)
            if block.store:
                usage.move(self._out, True, number * block.store)
            if self._plan.weight_streams:
                usage.move(self._weight_port, False, number * block.weights * self._weight_beats)
                usage.move(self._scale_port, False, number * block.weights * self._scale_beats)
        return usage

    def _prepare_weights(self) -> None:
        line, plan = self._line, self._plan
        regions, pipeline = line._memory.regions, self._pipeline
        self._weight_port = regions[plan.weight_region]
        self._scale_port = regions[plan.scale_region]
        coding = plan.op.weights.coding if plan.op.weights else WeightCoding.SWD
        buffer = line._buffers("weights")
        if coding is WeightCoding.FWD:
            buffer = line._buffers("fast_weights", pipeline.fast_weight_efficiency)
        rate = line._rate(self._weight_port, pipeline.ext_burst, buffer=buffer)
        latency = line._adapters[self._weight_port].rlatency
        if pipeline.core_weight_buffer and latency:
            room = pipeline.buffer_efficiency * pipeline.core_weight_buffer * line._config.cores
            limit = room / (latency + pipeline.ext_burst)
            rate = Rate(min(rate.beats, limit), rate.slots, False, rate.top)
        self._weight_rate = rate
        self._weight_latency = latency
        self._weight_beats = sum(plan.weight_streams) / pipeline.beat_bytes
        self._scale_beats = plan.scale_bytes / pipeline.beat_bytes

    def block(self, block: Block) -> None:
        """Pass one block."""
        self._depend()
        arrived, complete = self._fetch(block)
        start = max(self._line._mac_free, arrived)
        if self._number >= 2:  # two sets of accumulators
            start = max(start, self.output_ends[-2])
        start, weights = self._weights(block, start)
        self._multiply(block, start, complete, weights)
        self._put_out(block)
        self._number += 1

    def _depend(self) -> None:
        """Earliest start by the block dependency: block n of this operation needs what is that far behind."""
        previous = self._line._previous
        if previous is None:
            return
        done, depth = previous.done, self._plan.op.blockdep
        index = len(done) - 1 if not depth else len(done) - 1 - depth + self._number
        self._dependency = done[min(index, len(done) - 1)] if index >= 0 else 0.0

    # --- input ----------------------------------------------------------------------------------------------

    def _fetch(self, block: Block) -> tuple[float, float]:
        """Times at which the first step of the block's input has arrived, and all of it."""
        line = self._line
        start = max(line._fetch_free, self._start, self._dependency)
        if not block.reads:
            if self._windows:  # the last window serves this block too
                self._windows[-1] = self._number
            line._fetch_free = start
            return start, start
        start = max(start, self._buffer_free())
        self._windows.append(self._number)
        arrived = complete = free = start
        for read in block.reads:
            first, last, next_start = self._read(read, start)
            arrived, complete, free = max(arrived, first), max(complete, last), max(free, next_start)
        line._fetch_free = max(start + self._pipeline.block_overhead, free)
        return arrived, complete

    def _buffer_free(self) -> float:
        """When the input buffer has room for another window (or, stepwise, for the first part of one)."""
        if not self._windows:
            return 0.0
        if self._plan.stepwise:
            return self._mac_ends[self._windows[-1]] - self._last_step
        ahead = self._plan.windows_ahead
        return self._mac_ends[self._windows[-ahead]] if len(self._windows) >= ahead else 0.0

    def _read(self, read: Read, start: float) -> tuple[float, float, float]:
        """(first step there, all there, next read may start) of one feature map."""
        line, steps = self._line, self._plan.steps
        port = line._memory.regions[read.region]
        latency = line._adapters[port].rlatency
        rate = line._rate(port, self._plan.read_burst, buffer=self._buffer)
        service = line.ports[port].serve(start, read.beats, rate) - start
        self._service, self._latency = service, latency
        self.usage.ifm += service
        shortest = read.beats / rate.top
        # Limited by transactions in flight, a stream's service time already holds half a latency.
        limited = min(1.0, read.beats / service / rate.beats) if rate.beats < rate.top else 0.0
        exposed = latency * (1 - limited / 2)
        first = start + max(latency + shortest / steps, service / steps + exposed)
        last = start + max(latency + shortest, service + exposed)
        return first, last, last - latency

    # --- weights --------------------------------------------------------------------------------------------

    def _weights(self, block: Block, mac_start: float) -> tuple[float, float]:
        """(MAC start with the first weights there, all weights of the block there)."""
        if not self._plan.weight_streams:
            return mac_start, 0.0
        line = self._line
        if self._number:
            asked = max(mac_start - self._pipeline.weight_lookahead, line._weights_fetched)
            end = self._fetch_weights(asked, block.weights)
            return mac_start, end
        asked = max(self._start, line._weights_fetched)
        if not self._plan.op.blockdep:
            asked = max(asked, self._dependency)
        end = self._fetch_weights(asked, block.weights)
        first = asked + self._weight_latency + self._pipeline.weight_start
        return max(mac_start, first), end + self._weight_latency

    def _fetch_weights(self, asked: float, share: float) -> float:
        line, rate = self._line, self._weight_rate
        weights, scales = self._weight_beats * share, self._scale_beats * share
        end = line.ports[self._weight_port].serve(asked, weights, rate)
        end = line.ports[self._scale_port].serve(end, scales, rate)
        line._weights_fetched = end
        self.usage.weights += end - asked
        return end

    # --- MAC array and output stage -------------------------------------------------------------------------

    def _multiply(self, block: Block, start: float, complete: float, weights: float) -> None:
        """MAC work: at least its last step after the last input."""
        plan, steps = self._plan, self._plan.steps
        step = block.mac / steps
        end = max(start + block.mac + self._pipeline.block_overhead, complete + step, weights)
        if block.reads and plan.stepwise:
            # With room for two steps, the next one is asked for when the one before is done with.
            fetch, latency = self._service / steps, self._latency
            period = max(step, fetch, (latency + fetch + step) / 2)
            end = max(end, start + step + (steps - 1) * period)
            self._last_step = block.mac * plan.last_step
        self._mac_ends.append(end)
        self._line._mac_free = end

    def _put_out(self, block: Block) -> None:
        line, mac_end = self._line, self._mac_ends[-1]
        cycles = self._output_cycles[id(block)]
        start = max(line._output_free, mac_end - block.last_pass)
        stored = start
        if block.store:
            stored = line.ports[self._out].serve(start, block.store, self._out_rate)
            self.usage.store += stored - start
        end = max(start + cycles + self._pipeline.block_overhead, stored, mac_end + block.output_tail)
        line._output_free = end
        self.output_ends.append(end)
        self.done.append(end + self._response)

    def _output_time(self, block: Block) -> float:
        """Cycles of the output stage.

        Scales of a block arrive in buffers of SCALE_BUFFER_BYTES, one a latency, in every core.
        """
        if not self._plan.scale_bytes:
            return block.output
        cores = self._line._config.cores if self._line._config.family is Family.U65 else 1
        size = max(SCALE_BUFFER_BYTES, self._plan.scale_bytes * block.weights) / cores
        wait = size / SCALE_BUFFER_BYTES * self._line._adapters[self._scale_port].rlatency
        return max(block.output, wait)

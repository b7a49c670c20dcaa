# SPDX-License-Identifier: Apache-2.0
"""The time line: command processor, DMA, input fetch, MAC array and output stage working side by side.

The command processor reads the stream through its own small prefetch and issues operations into queues; each
operation's blocks then pass through fetch, MAC array and output stage. Operations are computed in the order
of the stream, each as early as its queue, its block dependency, the buffers and the ports allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npu.config import Family, NpuConfig
from npu.operation import DmaTransfer
from npu.timing.hardware import READ_BUFFERS, Pipeline
from npu.timing.kernel import KernelRun, Usage
from npu.timing.plan import KernelPlan
from npu.timing.ports import Port, Rate, stream_rate
from npu.timing.profile import EXT, SRAM, MemoryMap, TimingProfile

_INDEX_BYTES = 4


@dataclass(frozen=True)
class Span:
    """When an operation ran: `start` is its first request, `end` its last response."""

    start: float
    end: float
    usage: Usage


def adapter_port(config: NpuConfig, profile: TimingProfile, pipeline: Pipeline, number: int) -> Port:
    """An empty port, SRAM or EXT, behind its adapter."""
    width = (config.sram_ports, config.ext_ports)[number] or 1
    side_by_side = _side_by_side(config, number)
    return Port(
        profile.ports[number],
        bandwidth=width,
        adapters=2 if config.family is Family.U85 and number == SRAM else 1,
        permitted=(side_by_side, side_by_side * pipeline.write_efficiency),
        burst=pipeline.ext_burst,
    )


def _side_by_side(config: NpuConfig, port: int) -> float:
    """Requests that a stream may have on two SRAM ports at once: U85-2048."""
    return 2.0 if port == SRAM and config.sram_ports > 2 else 1.0


class Timeline:
    """Time of one run.

    Args:
        config: the NPU.
        profile, memory: timing of the two ports, and which of them each region is behind.
        pipeline: depths and delays.
    """

    def __init__(self, config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline):
        self.config, self.memory = config, memory
        self.adapters = profile.ports
        self.pipeline = pipeline
        self._is_85 = config.family is Family.U85
        self.ports = tuple(adapter_port(config, profile, pipeline, number) for number in (SRAM, EXT))
        self._rates: dict[tuple[int, float, bool, float], Rate] = {}
        self._time = 0.0
        self._words = 0
        self._burst_words = self.pipeline.command_burst * self.pipeline.beat_bytes // 4
        self._arrivals: list[float] = []
        self._consumed: list[float] = []
        self._burst_time = 0.0, 0.0
        self._sent = 0.0
        self._kernels: list[float] = []
        self._transfers: list[float] = []
        self.fetch_free = self.mac_free = self.output_free = 0.0
        self.weights_fetched = 0.0
        self._waited_for_dma = 0.0
        self.done_before: Sequence[float] = ()
        self._shared_ram: tuple[int, ...] = ()

    def rate(self, port: int, burst: float, *, write: bool = False, buffer: float = 0) -> Rate:
        """Rate of a stream; `buffer` is the beats that its reader has room for, 0 enough."""
        key = port, burst, write, buffer
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = self._make_rate(port, burst, write, buffer)
        return rate

    def _make_rate(self, port: int, burst: float, write: bool, buffer: float) -> Rate:
        pipeline, timing = self.pipeline, self.adapters[port]
        burst = min(burst, pipeline.sram_burst if port == SRAM else pipeline.ext_burst)
        side_by_side = _side_by_side(self.config, port)
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
        port = self.ports[self.memory.commands]
        rate = self.rate(self.memory.commands, self.pipeline.command_burst)
        bursts, begin = len(self._arrivals), self._time
        speed = port.left(self._time, rate)
        self._burst_time = self.pipeline.command_burst / speed, self.adapters[self.memory.commands].rlatency
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
        beats = (len(self._arrivals) - bursts) * self.pipeline.command_burst
        port.spread(begin, self._time, beats, rate)

    def _arrival(self, number: int) -> float:
        """When burst `number` of the stream is there: it was asked for when an earlier one was used up."""
        ahead = self.pipeline.command_prefetch
        while len(self._arrivals) <= number:
            count = len(self._arrivals)
            asked = self._consumed[count - ahead] if count >= ahead else 0.0
            self._sent = max(self._sent, asked) + self._burst_time[0]
            self._arrivals.append(self._sent + self._burst_time[1])
        return self._arrivals[number]

    def trim_commands(self, words: int) -> None:
        """The last burst may be shorter than what was booked."""
        bursts = -(-words // self._burst_words) * self._burst_words
        self.ports[self.memory.commands].moved[False] -= (bursts - words) * 4 / self.pipeline.beat_bytes

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
            port = self.memory.regions[dma.source.region]
            latency = self.adapters[port].rlatency
            # Other readers share the transactions in flight with it fairly, so they are not charged.
            rate = self.rate(port, pipeline.ext_burst, buffer=self.buffers("dma"))
            end = self.ports[port].serve(start, beats, Rate(rate.beats, 0.0, False, rate.top)) + latency
            first = start + latency
            usage.move(port, False, beats)
        if not dma.destination.internal:
            port = self.memory.regions[dma.destination.region]
            stored = self.ports[port].serve(first, beats, self.rate(port, pipeline.ext_burst, write=True))
            end = max(end, stored + self.adapters[port].wlatency)
            usage.move(port, True, beats)
        self._transfers.append(end)
        return Span(start, end, usage)

    def _read_indices(self, dma: DmaTransfer, start: float, usage: Usage) -> float:
        """A gather or scatter reads an int32 index for each row first."""
        if not (dma.source.indexed or dma.destination.indexed):
            return start
        port = self.memory.regions[dma.index_region]
        beats = dma.size0 * dma.size1 * _INDEX_BYTES / self.pipeline.beat_bytes
        rate = self.rate(port, self.pipeline.ext_burst, buffer=self.buffers("dma"))
        usage.move(port, False, beats)
        return self.ports[port].serve(start, beats, rate) + self.adapters[port].rlatency

    def buffers(self, name: str, efficiency: float | None = None) -> float:
        """Beats of a U85's read buffer that count; 0 where the stream is not limited by one."""
        if not self._is_85:
            return 0
        share = self.pipeline.buffer_efficiency if efficiency is None else efficiency
        return share * getattr(READ_BUFFERS[self.config.macs], name)

    # --- kernels --------------------------------------------------------------------------------------------

    def kernel(self, plan: KernelPlan, shared_ram: tuple[int, ...]) -> Span:
        """An operation other than DMA.

        Args:
            shared_ram: registers that lay out the shared RAM of U55 and U65; changing them waits for the
                accumulators.
        """
        self._time = max(self._time, _but(self._kernels, self.pipeline.kernel_queue - 1))
        start = self._time + self.pipeline.op_start
        if self._shared_ram != shared_ram:
            self.fetch_free = max(self.fetch_free, self.output_free)
        run = KernelRun(self, plan, start)
        run.run()
        run.usage.dma_wait, self._waited_for_dma = self._waited_for_dma, 0.0
        self.done_before = run.done
        self._shared_ram = shared_ram
        self._kernels.append(run.done[-1])
        return Span(start, run.done[-1], run.usage)


def _but(ends: Sequence[float], unfinished: int) -> float:
    """When all but `unfinished` of the operations have ended; 0 if there are no more than that."""
    recent = ends[-16:]
    return sorted(recent)[-1 - unfinished] if len(ends) > unfinished else 0.0

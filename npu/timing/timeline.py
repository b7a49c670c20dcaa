# SPDX-License-Identifier: Apache-2.0
"""The time line: command processor, DMA, input fetch, MAC array and output stage working side by side.

The command processor reads the stream through its own small prefetch and issues operations into queues; each
operation's blocks then pass through fetch, MAC array and output stage. Operations are computed in the order
of the stream, each as early as its queue, its block dependency, the buffers and the ports allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from npu.config import NpuConfig
from npu.operation import DmaTransfer, Operation
from npu.timing.demand import Demand, demands
from npu.timing.hardware import Pipeline
from npu.timing.kernel import KernelRun
from npu.timing.passage import Usage
from npu.timing.plan import KernelPlan
from npu.timing.profile import MemoryMap, TimingProfile

_INDEX_BYTES = 4


class Span(NamedTuple):
    """When an operation ran.

    Attributes:
        start, end: first request, last response.
        usage: what it kept busy.
        plan: None for a transfer.
        dma_wait: cycles that the command processor waited for transfers before it.
    """

    start: float
    end: float
    usage: Usage
    plan: KernelPlan | None = None
    dma_wait: float = 0.0


class Timeline:
    """Time of one run.

    Args:
        config: the NPU.
        profile, memory: timing of the two ports, and which of them each region is behind.
        pipeline: depths and delays.

    Attributes:
        took: cycles of the last operation of each kind.
        reconfiguring: cycles in which operations waited for the accumulators because the layout of the shared
            RAM changes.
    """

    def __init__(self, config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline):
        self._demands = demands(config, profile, memory, pipeline)
        self._memories = self._demands.memories
        self._adapters, self._regions = profile.ports, memory.regions
        self._commands = memory.commands
        self.pipeline = pipeline
        self.ports = self._memories.ports()
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
        self.reconfiguring = 0.0
        self.took: dict[Demand, float] = {}

    # --- command processor ----------------------------------------------------------------------------------

    def consume(self, words: int) -> None:
        """Read command words, one a cycle once they have arrived."""
        port = self.ports[self._commands]
        rate = self._memories.rate(self._commands, self.pipeline.command_burst)
        bursts, begin = len(self._arrivals), self._time
        if -self._words % self._burst_words < words:  # goes on to another burst
            speed = port.left(begin, rate)
            self._burst_time = self.pipeline.command_burst / speed, self._adapters[self._commands].rlatency
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
        if fetched := len(self._arrivals) - bursts:
            port.spread(begin, self._time, fetched * self.pipeline.command_burst, rate)

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
        self.ports[self._commands].moved[False] -= (bursts - words) * 4 / self.pipeline.beat_bytes

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
        moved: dict[tuple[int, bool], float] = {}
        start = self._read_indices(dma, start, moved)
        beats = dma.length * dma.size0 * dma.size1 / pipeline.beat_bytes
        end = first = start
        if not dma.source.internal:
            port = self._regions[dma.source.region]
            latency = self._adapters[port].rlatency
            end = self.ports[port].serve(start, beats, self._memories.transfer_rates[port]) + latency
            first = start + latency
            moved[port, False] = moved.get((port, False), 0.0) + beats
        if not dma.destination.internal:
            port = self._regions[dma.destination.region]
            stored = self.ports[port].serve(
                first, beats, self._memories.rate(port, pipeline.ext_burst, write=True)
            )
            end = max(end, stored + self._adapters[port].wlatency)
            moved[port, True] = beats
        self._transfers.append(end)
        return Span(start, end, Usage(moved))

    def _read_indices(self, dma: DmaTransfer, start: float, moved: dict[tuple[int, bool], float]) -> float:
        """A gather or scatter reads an int32 index for each row first."""
        if not (dma.source.indexed or dma.destination.indexed):
            return start
        port = self._regions[dma.index_region]
        beats = dma.size0 * dma.size1 * _INDEX_BYTES / self.pipeline.beat_bytes
        rate = self._memories.rate(port, self.pipeline.ext_burst, buffer=self._memories.buffers("dma"))
        moved[port, False] = beats
        return self.ports[port].serve(start, beats, rate) + self._adapters[port].rlatency

    # --- kernels --------------------------------------------------------------------------------------------

    def kernel(self, op: Operation, shared_ram: tuple[int, ...]) -> Span:
        """An operation other than DMA.

        Args:
            shared_ram: registers that lay out the shared RAM of U55 and U65; changing them waits for the
                accumulators.
        """
        demand = self._demands.of(op)
        self._time = max(self._time, _but(self._kernels, self.pipeline.kernel_queue - 1))
        start = self._time + self.pipeline.op_start
        if self._shared_ram != shared_ram:
            free = max(self.fetch_free, self.output_free)
            self.reconfiguring += max(0.0, free - max(self.fetch_free, start))
            self.fetch_free = free
        done, usage = KernelRun(self, demand, start).run()
        dma_wait, self._waited_for_dma = self._waited_for_dma, 0.0
        self.done_before = done
        self._shared_ram = shared_ram
        self._kernels.append(done[-1])
        return Span(start, done[-1], usage, demand.plan, dma_wait)


def _but(ends: Sequence[float], unfinished: int) -> float:
    """When all but `unfinished` of the operations have ended; 0 if there are no more than that."""
    recent = ends[-16:]
    return sorted(recent)[-1 - unfinished] if len(ends) > unfinished else 0.0

# SPDX-License-Identifier: Apache-2.0
"""From a command stream to cycles: the entry point of the cycle model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from npu.config import Family, NpuConfig
from npu.errors import NpuError, StreamError
from npu.operation import DmaTransfer, Operation
from npu.ops import EXECUTE
from npu.program import Program, Works
from npu.state import RegisterState, dma_transfer, operation
from npu.stream import Command, CommandStream
from npu.timing.hardware import PIPELINES, Pipeline
from npu.timing.profile import PORT_NAMES, MemoryMap, TimingProfile
from npu.timing.timeline import Span, Timeline, Usage

LATENCY = "latency"
_BUSY_ENOUGH = 0.5
_SHARED_RAM = {"IFM_IB_END": "value", "AB_START": "value", "ACC_FORMAT": "format"}
"""Registers and fields that lay out the shared RAM of U55 and U65."""


@dataclass(frozen=True)
class PortTraffic:
    """Data beats of a port."""

    read: int
    written: int
    beat_bytes: int

    @property
    def bytes_read(self) -> int:
        return self.read * self.beat_bytes

    @property
    def bytes_written(self) -> int:
        return self.written * self.beat_bytes


@dataclass(frozen=True)
class OpTiming:
    """Simulated time of one operation or DMA transfer.

    Attributes:
        offset, name, mode: of its command, as in `npu.machine.OpRecord`.
        start, end: cycles from the start of the job: first request, last response.
        cycles: by how much it moved the end of all operations so far, so that the values add up to the total;
            0 for work hidden behind other work.
        mac_cycles, output_cycles, decoder_cycles: busy time of MAC array, output stage, weight decoder.
        macs: multiply-accumulates, as in `npu.machine`.
        bound: what took most of its time: "mac", "weights", "ifm", "output", "store", "scales", "dma" (its
            data were awaited), or "latency" if nothing was busy for half of it.
        traffic: by name of the port.
        port: name of the one whose stream bounds it, if "ifm", "weights", "store" or "scales" does.
        bits: of an element of the IFM; 0 for a transfer.
        dependency_cycles: its blocks waited for those of the operation before.
    """

    offset: int
    name: str
    mode: str
    start: int
    end: int
    cycles: int
    mac_cycles: int
    output_cycles: int
    decoder_cycles: int
    macs: int
    bound: str
    traffic: Mapping[str, PortTraffic]
    port: str = ""
    bits: int = 0
    dependency_cycles: int = 0

    def utilisation(self, config: NpuConfig) -> float:
        """Share of the MACs that `cycles` would have had time for."""
        return self.macs / (self.cycles * config.macs) if self.cycles else 0.0


@dataclass(frozen=True)
class Timing:
    """Simulated time of one job.

    Attributes:
        total: cycles in which the NPU is active.
        ops: in the order of the stream.
        traffic: by name of the port, command fetches included.
        reconfiguration_cycles: operations waited because the layout of the shared RAM changes, U55 and U65.
    """

    config: NpuConfig
    profile: TimingProfile
    total: int
    ops: tuple[OpTiming, ...]
    traffic: Mapping[str, PortTraffic]
    reconfiguration_cycles: int = 0

    @cached_property
    def macs(self) -> int:
        return sum(op.macs for op in self.ops)

    @cached_property
    def mac_cycles(self) -> int:
        return sum(op.mac_cycles for op in self.ops)

    @cached_property
    def output_cycles(self) -> int:
        return sum(op.output_cycles for op in self.ops)

    @cached_property
    def decoder_cycles(self) -> int:
        return sum(op.decoder_cycles for op in self.ops)


def estimate(
    stream: Program | CommandStream | Iterable[Command],
    config: NpuConfig,
    profile: TimingProfile,
    memory: MemoryMap,
    pipeline: Pipeline | None = None,
) -> Timing:
    """Cycles of a command stream, without executing it. Branches are not followed.

    Args:
        stream: a `Program` spares reading its operations again.
        profile, memory: timing of the memories, and which of them each region is in.
        pipeline: depths and delays in place of those of the family; for fitting.

    Raises:
        StreamError: no STOP. NpuError: a command without known meaning, with opcode and offset.
    """
    commands = stream.commands if isinstance(stream, (Program, CommandStream)) else tuple(stream)
    works = stream.works if isinstance(stream, Program) else None
    return _Estimate(config, profile, memory, pipeline or PIPELINES[config.family]).run(commands, works)


class _Estimate:
    def __init__(self, config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline):
        self._config, self._profile, self._pipeline = config, profile, pipeline
        self._state = RegisterState(config.family)
        self._line = Timeline(config, profile, memory, pipeline)
        self._beat = pipeline.beat_bytes
        self._names = PORT_NAMES[config.family]
        self._ops: list[OpTiming] = []
        self._end = 0.0

    def run(self, commands: tuple[Command, ...], works: Works | None) -> Timing:
        words = total_words = 0
        for index, command in enumerate(commands):
            spec = command.spec
            words += 2 if spec.wide else 1
            if not spec.is_operation and works is not None and spec.name not in _SHARED_RAM:
                continue  # is in the works already
            try:
                if not spec.is_operation:
                    self._state.latch(command)
                    continue
                self._line.consume(words)
                total_words += words
                words = 0
                if command.name == "OP_STOP":
                    self._line.trim_commands(total_words)
                    return self._result()
                self._operate(command, works.get(index) if works is not None else None)
            except NpuError as error:
                raise error.located(opcode=command.name, offset=command.offset) from None
        raise StreamError("stream ends without STOP")

    def _operate(self, command: Command, work: Operation | DmaTransfer | None) -> None:
        if command.name == "OP_KERNEL_WAIT":
            self._line.wait_for_kernels(command.value("n"))
        elif command.name == "OP_DMA_WAIT":
            self._line.wait_for_transfers(command.value("k"))
        elif command.name == "OP_DMA_START":
            transfer = work if isinstance(work, DmaTransfer) else dma_transfer(self._state, command)
            self._record(command, self._line.transfer(transfer))
        elif command.name in EXECUTE:
            op = work if isinstance(work, Operation) else operation(self._state, command)
            self._record(command, self._line.kernel(op, self._shared_ram()))

    def _shared_ram(self) -> tuple[int, ...]:
        if self._config.family is Family.U85:
            return ()
        return tuple(int(self._state.value(name, field)) for name, field in _SHARED_RAM.items())

    def _record(self, command: Command, span: Span) -> None:
        end, plan = max(self._end, span.end), span.plan
        cycles = round(end) - round(self._end)
        bound = "dma" if plan is None else _bound(span.usage, end - self._end)
        port = span.usage.ports.get(bound)
        mode = command.value("mode") if "mode" in command.spec.field else None
        self._ops.append(
            OpTiming(
                offset=command.offset,
                name=command.name,
                mode=getattr(mode, "name", ""),
                start=round(span.start),
                end=round(span.end),
                cycles=cycles,
                mac_cycles=round(span.usage.mac),
                output_cycles=round(span.usage.output),
                decoder_cycles=round(plan.decoder_cycles) if plan else 0,
                macs=plan.macs if plan else 0,
                bound=bound,
                traffic=dict(self._traffic(span.usage)),
                port=self._names[port] if port is not None else "",
                bits=8 * plan.op.ifm.dtype.itemsize if plan else 0,
                dependency_cycles=round(span.usage.dependency),
            )
        )
        self._end = end

    def _traffic(self, usage: Usage) -> Iterator[tuple[str, PortTraffic]]:
        for port, name in enumerate(self._names):
            read, written = (round(usage.beats.get((port, write), 0.0)) for write in (False, True))
            if read or written:
                yield name, PortTraffic(read, written, self._beat)

    def _result(self) -> Timing:
        traffic = {
            name: PortTraffic(round(port.moved[False]), round(port.moved[True]), self._beat)
            for name, port in zip(self._names, self._line.ports, strict=True)
        }
        total, reconfiguring = round(self._line.finish()), round(self._line.reconfiguring)
        return Timing(self._config, self._profile, total, tuple(self._ops), traffic, reconfiguring)


_RESOURCES = ("mac", "weights", "ifm", "output", "store", "scales", "dma")


def _bound(usage: Usage, cycles: float) -> str:
    """The resource that was busy longest, if it was for half of the time the operation added."""
    busy = (
        *(usage.mac, usage.weights, usage.ifm, usage.output),
        *(usage.store, usage.scale_wait, usage.dma_wait),
    )
    longest = max(busy)
    return _RESOURCES[busy.index(longest)] if longest >= _BUSY_ENOUGH * cycles else LATENCY

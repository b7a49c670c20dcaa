# SPDX-License-Identifier: Apache-2.0
"""From a command stream to cycles: the entry point of the cycle model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from npu.config import Family, NpuConfig
from npu.errors import NpuError, StreamError
from npu.operation import DmaTransfer, Operation
from npu.ops import EXECUTE
from npu.program import Program, Works
from npu.state import RegisterState, dma_transfer, operation
from npu.stream import Command, CommandStream
from npu.timing.hardware import PIPELINES, Pipeline
from npu.timing.passage import Usage
from npu.timing.profile import PORT_NAMES, MemoryMap, TimingProfile
from npu.timing.timeline import Span, Timeline

LATENCY = "latency"
_WORD = 4
_BUSY_ENOUGH = 0.5
_EQUAL = 1 - 1e-9
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


class OpTiming(NamedTuple):
    """Simulated time of one operation or DMA transfer.

    Attributes:
        offset: of its command, as in `npu.machine.OpRecord`.
        start, end: cycles from the start of the job: first request, last response.
        cycles: by how much it moved the end of all operations so far, so that the values add up to the total;
            0 for work hidden behind other work.
        bound: what took most of its time: "mac", "weights", "ifm", "output", "store", "scales", "dma" (its
            data were awaited), or "latency" if nothing was busy for half of it.
        port: name of the one whose stream bounds it, if "ifm", "weights", "store" or "scales" does.
        name, mode: of its command, as in `npu.machine.OpRecord`.
        mac_cycles, output_cycles, decoder_cycles: busy time of MAC array, output stage, weight decoder.
        macs: multiply-accumulates, as in `npu.machine`.
        traffic: by name of the port.
        bits: of an element of the IFM; 0 for a transfer.
        dependency_cycles: its blocks waited for those of the operation before.
    """

    offset: int
    start: int
    end: int
    cycles: int
    bound: str
    port: str
    name: str
    mode: str
    mac_cycles: int
    output_cycles: int
    decoder_cycles: int
    macs: int
    traffic: Mapping[str, PortTraffic]
    bits: int
    dependency_cycles: int

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
    run = _Estimate(config, profile, memory, pipeline or PIPELINES[config.family])
    if isinstance(stream, Program) and stream.works is not None:
        return run.program(stream, stream.works)
    return run.commands(stream.commands if isinstance(stream, (Program, CommandStream)) else stream)


class _Estimate:
    def __init__(self, config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline):
        self._config, self._profile, self._pipeline = config, profile, pipeline
        self._state = RegisterState(config.family)
        self._shared_ram = self._read_shared_ram()
        self._line = Timeline(config, profile, memory, pipeline)
        self._beat = pipeline.beat_bytes
        self._names = PORT_NAMES[config.family]
        self._ops: list[OpTiming] = []
        self._known: dict[int, _Work] = {}  # by identity of the usage
        self._traffics: dict[tuple[object, ...], Mapping[str, PortTraffic]] = {}
        self._end = 0.0
        self._words = 0

    def commands(self, commands: Iterable[Command]) -> Timing:
        """One after the other."""
        words = 0
        for command in commands:
            words += _words(command)
            if self._step(command, words, None):
                return self._result()
            words = 0 if command.spec.is_operation else words
        raise StreamError("stream ends without STOP")

    def program(self, program: Program, works: Works) -> Timing:
        """Of the settings those only that are not in the works."""
        commands, of_interest = program.commands, program.operations
        if self._config.family is not Family.U85:
            shared = [index for index, command in enumerate(commands) if command.spec.name in _SHARED_RAM]
            of_interest = tuple(sorted((*of_interest, *shared)))
        read = commands[0].offset if commands else 0
        for index in of_interest:
            command = commands[index]
            end = command.offset + _WORD * _words(command)
            if self._step(command, (end - read) // _WORD, works.get(index)):
                return self._result()
            read = end if command.spec.is_operation else read
        raise StreamError("stream ends without STOP")

    def _step(self, command: Command, words: int, work: Operation | DmaTransfer | None) -> bool:
        """One command, `words` behind the operation before; true at the end."""
        try:
            if not command.spec.is_operation:
                self._state.latch(command)
                if command.spec.name in _SHARED_RAM:
                    self._shared_ram = self._read_shared_ram()
                return False
            self._line.consume(words)
            self._words += words
            self._operate(command, work)
        except NpuError as error:
            raise error.located(opcode=command.name, offset=command.offset) from None
        return command.spec.name == "OP_STOP"

    def _operate(self, command: Command, work: Operation | DmaTransfer | None) -> None:
        name = command.spec.name
        if name == "OP_DMA_START":
            transfer = work if isinstance(work, DmaTransfer) else dma_transfer(self._state, command)
            self._record(command, self._line.transfer(transfer))
        elif name in EXECUTE:
            op = work if isinstance(work, Operation) else operation(self._state, command)
            self._record(command, self._line.kernel(op, self._shared_ram))
        elif name == "OP_KERNEL_WAIT":
            self._line.wait_for_kernels(command.value("n"))
        elif name == "OP_DMA_WAIT":
            self._line.wait_for_transfers(command.value("k"))

    def _read_shared_ram(self) -> tuple[int, ...]:
        if self._config.family is Family.U85:
            return ()
        return tuple(int(self._state.value(name, field)) for name, field in _SHARED_RAM.items())

    def _record(self, command: Command, span: Span) -> None:
        before, end = self._end, max(self._end, span.end)
        start, cycles, usage = round(span.start), round(end) - round(before), span.usage
        known = self._known.get(id(usage))
        if known is None:
            known = self._known[id(usage)] = self._work(command, span)
        bound = "dma" if span.plan is None else _bound(known, span.dma_wait, end - before)
        port = usage.ports.get(bound)
        name = "" if port is None else self._names[port]
        self._ops.append(OpTiming(command.offset, start, round(span.end), cycles, bound, name, *known.timing))
        self._end = end

    def _work(self, command: Command, span: Span) -> _Work:
        usage, plan = span.usage, span.plan
        mode = command.value("mode") if "mode" in command.spec.field else None
        longest, resource = _longest(usage)
        return _Work(
            usage,
            longest,
            resource,
            (
                command.name,
                getattr(mode, "name", ""),
                round(usage.mac),
                round(usage.output),
                round(plan.decoder_cycles) if plan else 0,
                plan.macs if plan else 0,
                self._traffic(usage),
                8 * plan.op.ifm.dtype.itemsize if plan else 0,
                round(usage.dependency),
            ),
        )

    def _traffic(self, usage: Usage) -> Mapping[str, PortTraffic]:
        """By name of the port; the same for operations that move the same."""
        key = tuple(usage.beats.items())
        traffic = self._traffics.get(key)
        if traffic is None:
            traffic = self._traffics[key] = dict(self._moved(usage))
        return traffic

    def _moved(self, usage: Usage) -> Iterator[tuple[str, PortTraffic]]:
        for port, name in enumerate(self._names):
            read, written = (round(usage.beats.get((port, write), 0.0)) for write in (False, True))
            if read or written:
                yield name, PortTraffic(read, written, self._beat)

    def _result(self) -> Timing:
        self._line.trim_commands(self._words)
        traffic = {
            name: PortTraffic(round(port.moved[False]), round(port.moved[True]), self._beat)
            for name, port in zip(self._names, self._line.ports, strict=True)
        }
        total, reconfiguring = round(self._line.finish()), round(self._line.reconfiguring)
        return Timing(self._config, self._profile, total, tuple(self._ops), traffic, reconfiguring)


def _words(command: Command) -> int:
    return 2 if command.spec.wide else 1


class _Work(NamedTuple):
    """What operations that pass in the same way have in common.

    Attributes:
        longest, resource: how long the one that was busy longest was, and which.
        timing: from `OpTiming.name` on.
    """

    usage: Usage
    longest: float
    resource: str
    timing: tuple[str, str, int, int, int, int, Mapping[str, PortTraffic], int, int]


_RESOURCES = ("mac", "weights", "ifm", "output", "store", "scales")


def _longest(usage: Usage) -> tuple[float, str]:
    """Streams that fill a port together are busy equally long: the first of equals."""
    busy = usage.mac, usage.weights, usage.ifm, usage.output, usage.store, usage.scale_wait
    longest = max(busy)
    return longest, next(
        name for name, time in zip(_RESOURCES, busy, strict=True) if time >= longest * _EQUAL
    )


def _bound(work: _Work, dma_wait: float, cycles: float) -> str:
    """The resource that was busy longest, if it was for half of the time the operation added."""
    longest, resource = work.longest, work.resource
    if dma_wait * _EQUAL > longest:
        longest, resource = dma_wait, "dma"
    return resource if longest >= _BUSY_ENOUGH * cycles else LATENCY

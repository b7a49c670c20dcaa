# SPDX-License-Identifier: Apache-2.0
"""The machine: fetches commands, latches registers, executes operations in order, and keeps the record.

Sequential: KERNEL_WAIT, DMA_WAIT and BLOCKDEP order work that the hardware overlaps, so here they have no
    effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npu import program
from npu.blas import one_thread
from npu.config import NpuConfig
from npu.container import TensorSpec, VelaBin
from npu.errors import ContainerError, NotModelled, NpuError, StreamError
from npu.execution import Execution
from npu.featuremap import MAX_ELEMENTS
from npu.guesses import Guess
from npu.memory import ArrayMemory, Memory
from npu.operation import DmaTransfer, Operation
from npu.ops import EXECUTE
from npu.program import Program
from npu.state import RegisterState, dma_transfer, operation
from npu.stream import Command

MAX_REPEATED = 1 << 18
"""Commands executed beyond the length of the stream, that is in loops of branches."""
MAX_WORK = 1 << 40
"""Multiply-accumulates and results of one run."""
_FAST_SCRATCH_BYTES = 384 * 1024
_ORDERING = frozenset({"OP_KERNEL_WAIT", "OP_DMA_WAIT", "OP_PMU_MASK"})


@dataclass(frozen=True)
class OpRecord:
    """What one operation did.

    Attributes:
        offset, name: of its command; `mode` is the mode field's name (pools, elementwise, resize), else "".
        ifm_shape, ofm_shape: [h, w, c], None for DMA.
        macs: multiply-accumulates of convolutions, padding and unused lanes not counted.
        bytes_read, bytes_written: distinct elements moved, by region (not bus traffic).
        seconds: host time.
    """

    offset: int
    name: str
    mode: str
    ifm_shape: tuple[int, int, int] | None
    ofm_shape: tuple[int, int, int] | None
    macs: int
    bytes_read: Mapping[int, int]
    bytes_written: Mapping[int, int]
    seconds: float


@dataclass(frozen=True)
class RunResult:
    """A finished run: one record an operation, in order of execution.

    Attributes:
        commands: commands executed, register settings included.
        irq_mask: masks of the STOP and IRQ commands, or-ed.
        guesses: what the result takes to be true of the hardware without a published description.
    """

    ops: tuple[OpRecord, ...]
    commands: int
    irq_mask: int
    guesses: frozenset[Guess] = frozenset()

    @cached_property
    def macs(self) -> int:
        """Of all operations."""
        return sum(op.macs for op in self.ops)

    @cached_property
    def bytes_read(self) -> dict[int, int]:
        """By region."""
        return _total(op.bytes_read for op in self.ops)

    @cached_property
    def bytes_written(self) -> dict[int, int]:
        """By region."""
        return _total(op.bytes_written for op in self.ops)


def _total(parts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    result: dict[int, int] = {}
    for part in parts:
        for region, size in part.items():
            result[region] = result.get(region, 0) + size
    return result


class Npu:
    """One NPU configuration, able to run command streams. Keeps nothing from run to run.

    A `strict` one raises NotModelled where the result would rest on a guess about hardware.
    """

    def __init__(self, config: NpuConfig, *, strict: bool = False):
        self.config = config
        self.strict = strict

    def run(
        self, cmd_data: bytes, memory: Memory, after: Callable[[Command], None] | None = None
    ) -> RunResult:
        """Run a driver payload (COP1 or COP2).

        Args:
            after: called after every operation, with its command; the memory is then as that left it.

        Raises:
            NpuError: a subclass with opcode and byte offset in `cmd_data`.
        """
        built_for, read = program.from_payload(bytes(cmd_data))
        if built_for != self.config:
            raise StreamError(
                f"stream is built for {built_for.name}, the NPU is {self.config.name}", offset=0
            )
        return self._execute(read, memory, after)

    def run_commands(self, commands: bytes, memory: Memory) -> RunResult:
        """Run bare register commands (what QBASE and QSIZE point at); offsets count from their first byte."""
        return self._execute(program.from_commands(bytes(commands), self.config.family), memory)

    def _execute(
        self,
        read: Program,
        memory: Memory,
        after: Callable[[Command], None] | None = None,
    ) -> RunResult:
        with one_thread():
            return _Run(self.config, memory, read, self.strict, after).to_the_end()


class _Run:
    """One run of one stream."""

    def __init__(
        self,
        config: NpuConfig,
        memory: Memory,
        read: Program,
        strict: bool,
        after: Callable[[Command], None] | None,
    ):
        self._after = after
        self._state = RegisterState(config.family)
        self._execution = Execution(config, memory, strict=strict)
        self._commands, self._program = read.commands, read
        self._records: list[OpRecord] = []
        self._last: Operation | None = None
        self._next = 0
        self._work = 0
        self._irq_mask = 0

    def to_the_end(self) -> RunResult:
        """Execute until STOP."""
        for executed, position in self._positions_in_order():
            command = self._commands[position]
            try:
                if executed > len(self._commands) + MAX_REPEATED:
                    raise NotModelled(f"more than {MAX_REPEATED} commands repeated by branches")
                self._next = self._step(command, position)
            except NpuError as error:
                raise error.located(opcode=command.name, offset=command.offset) from None
            if command.name == "OP_STOP":
                guesses = frozenset(self._execution.guesses)
                return RunResult(tuple(self._records), executed, self._irq_mask, guesses)
        last = self._commands[-1] if self._commands else None
        raise StreamError("stream ends without STOP", offset=last.offset + last.size if last else 0)

    def _positions_in_order(self) -> Iterator[tuple[int, int]]:
        """(commands executed with this one, its index): operations alone where their registers are known."""
        if self._program.works is not None:
            yield from ((position + 1, position) for position in self._program.operations)
            return
        executed = 0
        while self._next < len(self._commands):
            executed += 1
            yield executed, self._next

    def _step(self, command: Command, position: int) -> int:
        """Execute one command; index of the next one."""
        if not command.spec.is_operation:
            self._state.latch(command)
        elif command.name == "OP_BRANCH":
            return self._branch(command, position)
        elif command.name in ("OP_STOP", "OP_IRQ"):
            self._irq_mask |= command.value("mask")
        elif command.name not in _ORDERING:
            self._operate(command, position)
            if self._after is not None:
                self._after(command)
        return position + 1

    def _branch(self, command: Command, position: int) -> int:
        """Unconditional, or taken when the last result (one element) is not zero."""
        if command.value("condition") and not self._last_result():
            return position + 1
        target = self._positions.get(self._commands[0].offset + command.value("target"))
        if target is None:
            raise StreamError(f"branch to {command.value('target'):#x}, where no command starts")
        return target

    @cached_property
    def _positions(self) -> dict[int, int]:
        """Index of the command at each byte offset."""
        return {command.offset: index for index, command in enumerate(self._commands)}

    def _last_result(self) -> bool:
        op = self._last
        if op is None or op.ofm.elements != 1:
            raise NotModelled("branch on a result that is not one element")
        self._execution.assume(Guess.BRANCH_CONDITION)
        return bool(self._execution.load(op.ofm)[0, 0, 0])

    def _operate(self, command: Command, position: int) -> None:
        start = time.perf_counter()
        work = self._work_of(command, position)
        if isinstance(work, Operation):
            self._last = work
            if work.ofm.elements > MAX_ELEMENTS:
                raise NotModelled(f"result of {work.ofm.elements} elements (at most {MAX_ELEMENTS})")
        macs = EXECUTE[command.name](self._execution, work)
        self._records.append(self._record(work, macs, time.perf_counter() - start))
        self._work += macs + (work.ofm.elements if isinstance(work, Operation) else 0)
        if self._work > MAX_WORK:
            raise NotModelled(f"more than {MAX_WORK} multiply-accumulates and results")

    def _work_of(self, command: Command, position: int) -> Operation | DmaTransfer:
        if self._program.works is not None:
            return self._program.works[position]
        read = dma_transfer if command.name == "OP_DMA_START" else operation
        return read(self._state, command)

    def _record(self, work: Operation | DmaTransfer, macs: int, seconds: float) -> OpRecord:
        command = work.command
        read, written = self._execution.take_traffic()
        mode = command.value("mode") if "mode" in command.spec.field else None
        return OpRecord(
            offset=command.offset,
            name=command.name,
            mode=getattr(mode, "name", ""),
            ifm_shape=work.ifm.shape if isinstance(work, Operation) else None,
            ofm_shape=work.ofm_shape if isinstance(work, Operation) else None,
            macs=macs,
            bytes_read=read,
            bytes_written=written,
            seconds=seconds,
        )


# --- a whole delegate on the host ---------------------------------------------------------------------------


def execute(
    vela: VelaBin, config: NpuConfig, inputs: Sequence[np.ndarray], *, strict: bool = False
) -> list[np.ndarray]:
    """Run a compiled network: inputs in, outputs out.

    Args:
        inputs: one array per VelaBin input, raw elements in memory order (any shape and type of the right
            byte size).
        strict: refuse to rest on guesses about hardware (npu.guesses).

    Returns:
        One signed integer array per output, of its element size and six-dimensional shape.

    Raises:
        NpuError: a subclass, with opcode and byte offset where a command is at fault; ContainerError also
            for a wrong number or size of inputs.
    """
    memory = memory_for(vela, inputs)
    Npu(config, strict=strict).run(vela.cmd_data, memory)
    return [_output(memory, spec) for spec in vela.outputs]


def memory_for(vela: VelaBin, inputs: Sequence[np.ndarray]) -> ArrayMemory:
    """The regions of a network with its constants and inputs in place.

    Raises:
        ContainerError: a wrong number or size of inputs.
    """
    memory = ArrayMemory(_regions(vela))
    if len(inputs) != len(vela.inputs):
        raise ContainerError(f"network has {len(vela.inputs)} inputs, {len(inputs)} given")
    for spec, array in zip(vela.inputs, inputs, strict=True):
        raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        if raw.size != spec.size:
            raise ContainerError(f"input of {raw.size} bytes where {spec.size} are expected")
        memory.write(spec.region, spec.offset, raw)
    return memory


def _regions(vela: VelaBin) -> dict[int, np.ndarray]:
    """Region 0 constants, 1 scratch, 2 fast scratch, others as large as the tensors in them."""
    fast = _FAST_SCRATCH_BYTES if vela.fast_scratch_size is None else vela.fast_scratch_size
    sizes = {1: vela.scratch_size, 2: fast}
    for spec in (*vela.inputs, *vela.outputs):
        if spec.region > 2:
            sizes[spec.region] = max(sizes.get(spec.region, 0), spec.offset + spec.size)
    arrays = {region: np.zeros(size, np.uint8) for region, size in sizes.items()}
    arrays[0] = np.frombuffer(vela.weight_data, np.uint8)
    return arrays


def _output(memory: Memory, spec: TensorSpec) -> np.ndarray:
    raw = memory.read(spec.region, spec.offset, spec.size).copy()
    return raw.view(f"<i{spec.elem_size}").reshape(spec.shape)

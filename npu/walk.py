# SPDX-License-Identifier: Apache-2.0
"""The operations of a command stream in the order of the stream, without executing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from npu.config import Family
from npu.errors import NpuError
from npu.operation import DmaTransfer, Operation
from npu.ops import EXECUTE
from npu.state import RegisterState, dma_transfer, operation
from npu.stream import Command


@dataclass(frozen=True)
class Step:
    """One operation command with what it asks for.

    Attributes:
        number: counts operations from 0.
        settings: the commands since the operation before, this operation's own excluded.
    """

    number: int
    command: Command
    work: Operation | DmaTransfer
    settings: tuple[Command, ...]


def walk(commands: Iterable[Command], family: Family) -> Iterator[Step]:
    """Every operation and DMA transfer, branches not followed.

    Raises:
        NpuError: registers without a known meaning, with opcode and byte offset.
    """
    state = RegisterState(family)
    settings: list[Command] = []
    number = 0
    for command in commands:
        try:
            if not command.spec.is_operation:
                state.latch(command)
            elif command.name in EXECUTE:
                read = dma_transfer if command.name == "OP_DMA_START" else operation
                yield Step(number, command, read(state, command), tuple(settings))
                number, settings = number + 1, []
                continue
        except NpuError as error:
            raise error.located(opcode=command.name, offset=command.offset) from None
        settings.append(command)

# SPDX-License-Identifier: Apache-2.0
"""A command stream read once and kept for the next run of the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from npu import stream
from npu.config import Family, NpuConfig, from_config_word
from npu.errors import NpuError
from npu.operation import DmaTransfer, Operation
from npu.stream import Command
from npu.walk import walk

_KEPT = 16

Works = Mapping[int, Operation | DmaTransfer]
"""Operations and transfers by index of the command that starts them."""


@dataclass(frozen=True)
class Program:
    """Register commands, and what they ask for.

    Attributes:
        operations: indices of the commands that are no register settings.
        works: what each of them asks for; None where registers depend on the way taken through branches, or a
            command is at fault, which a run has to meet in its turn.
    """

    commands: tuple[Command, ...]
    operations: tuple[int, ...]
    works: Works | None


@lru_cache(maxsize=_KEPT)
def from_payload(cmd_data: bytes) -> tuple[NpuConfig, Program]:
    """A driver payload: the configuration it is built for, and its commands.

    Raises:
        StreamError, UnknownConfig: see npu.stream.parse.
    """
    parsed = stream.parse(cmd_data)
    config = from_config_word(parsed.config_word)
    return config, _program(parsed.commands, config.family)


@lru_cache(maxsize=_KEPT)
def from_commands(commands: bytes, family: Family) -> Program:
    """Bare register commands; offsets count from their first byte.

    Raises:
        StreamError: malformed commands.
    """
    return _program(stream.decode(commands, family), family)


def _program(commands: tuple[Command, ...], family: Family) -> Program:
    operations = tuple(index for index, command in enumerate(commands) if command.spec.is_operation)
    return Program(commands, operations, _works(commands, operations, family))


def _works(commands: tuple[Command, ...], operations: tuple[int, ...], family: Family) -> Works | None:
    if any(commands[index].name == "OP_BRANCH" for index in operations):
        return None
    try:
        works = {step.command.offset: step.work for step in walk(commands, family)}
    except NpuError:
        return None
    return {index: works[offset] for index in operations if (offset := commands[index].offset) in works}

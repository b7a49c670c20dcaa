# SPDX-License-Identifier: Apache-2.0
"""Text of `npu.stream.disassemble` back to commands: the two are each other's inverse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from npu import isa
from npu.config import Family
from npu.errors import StreamError
from npu.stream import Command, from_operand


def assemble(lines: Iterable[str], family: Family, offset: int = 0) -> Iterator[Command]:
    """Commands from lines ``NAME field=value …``; what stands before the name (offset, raw words) is ignored.

    Args:
        offset: byte offset of the first command.

    Raises:
        StreamError: an unknown command, field or value, with the number of the line.
    """
    for number, line in enumerate(lines, start=1):
        words = line.split()
        start = next((i for i, word in enumerate(words) if word in isa.BY_NAME[family]), None)
        if start is None:
            if words:
                raise StreamError(f"line {number}: no {family.name} command in {line.strip()!r}")
            continue
        try:
            command = _command(isa.BY_NAME[family][words[start]], words[start + 1 :], offset)
        except (KeyError, ValueError) as error:
            raise StreamError(f"line {number}: {line.strip()!r}: {error}") from error
        yield command
        offset += command.size


def _command(spec: isa.CommandSpec, settings: list[str], offset: int) -> Command:
    operand = 0
    for setting in settings:
        name, _, text = setting.partition("=")
        if name == "reserved":
            operand |= int(text, 0)
        else:
            operand |= spec.field[name].insert(_value(spec.field[name], text))
    return from_operand(spec, operand, offset)


def _value(field: isa.Field, text: str) -> int:
    if field.enum is not None and text in field.enum.__members__:
        return field.enum[text]
    return int(text, 0)

# SPDX-License-Identifier: Apache-2.0
"""Command streams: driver header (COP1, COP2), register commands, encoding and listing."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from npu import isa
from npu.config import Family, from_config_word
from npu.errors import NotModelled, StreamError

E = TypeVar("E", bound=enum.IntEnum)

COP1_MAGIC = 0x31504F43  # "COP1"
COP2_MAGIC = 0x32504F43  # "COP2"
_VEUM_MAGIC = 0x4D554556  # "VEUM", the optimiser metadata of COP2

_ACTION_CONFIG = 1
_ACTION_COMMANDS = 2
_ACTION_NOP = 5


@dataclass(frozen=True)
class Command:
    """One decoded register command.

    Attributes:
        offset: byte offset in the stream that was parsed.
        operand: what the fields index, see npu.isa.
        word0, payload: the raw words (payload None for a one-word command).
    """

    offset: int
    spec: isa.CommandSpec
    operand: int
    word0: int
    payload: int | None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def opcode(self) -> int:
        return self.spec.opcode

    @property
    def size(self) -> int:
        """Bytes in the stream."""
        return 8 if self.spec.wide else 4

    @property
    def fields(self) -> dict[str, int]:
        return {field.name: field.extract(self.operand) for field in self.spec.fields}

    @property
    def reserved(self) -> int:
        """Operand bits set outside every field."""
        return self.operand & ~self.spec.field_mask

    def value(self, field: str = "value") -> int:
        """Value of a field, a member of its enumeration if it is a known code."""
        return self.spec.field[field].extract(self.operand)

    def mode(self, kind: type[E]) -> E:
        """The mode field of an operation.

        Raises:
            NotModelled: the code is reserved.
        """
        value = self.value("mode")
        if not isinstance(value, kind):
            raise NotModelled(f"mode {value} is reserved")
        return value


@dataclass(frozen=True)
class CommandStream:
    """A command stream with its driver header.

    Attributes:
        config_word, id_word: what the stream was built for (CONFIG and ID register layout).
        base_offset: byte offset of the first register command in the data that was parsed.
    """

    config_word: int
    id_word: int
    base_offset: int
    commands: tuple[Command, ...]


# --- register commands --------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def decode(data: bytes, family: Family, base_offset: int = 0) -> tuple[Command, ...]:
    """Decode register commands; `base_offset` is added to the offsets they report.

    Raises:
        StreamError: an unknown opcode, a set reserved bit of word 0, or data that ends inside a command.
    """
    if len(data) % 4:
        raise StreamError("command stream is not a whole number of words", offset=base_offset + len(data))
    words = struct.unpack(f"<{len(data) // 4}I", data)
    table = isa.BY_OPCODE[family]
    commands = []
    index = 0
    while index < len(words):
        word0 = words[index]
        offset = base_offset + 4 * index
        wide = bool(word0 & 0x4000)
        spec = table.get((wide, word0 & 0x3FF))
        if spec is None or word0 & 0xBC00:
            raise StreamError(
                f"no {family.name} command has word {word0:#010x}", opcode=word0 & 0x3FF, offset=offset
            )
        if not wide:
            commands.append(Command(offset, spec, word0 >> 16, word0, None))
            index += 1
            continue
        if index + 1 == len(words):
            raise StreamError("stream ends inside a two-word command", opcode=spec.name, offset=offset)
        payload = words[index + 1]
        commands.append(Command(offset, spec, payload | word0 >> 16 << 32, word0, payload))
        index += 2
    return tuple(commands)


def command(family: Family, name: str, *, offset: int = 0, **fields: int) -> Command:
    """Build a command by name from field values (unnamed fields are zero).

    Raises:
        KeyError: the family has no such command or field. ValueError: a value does not fit.
    """
    spec = isa.BY_NAME[family][name]
    return from_operand(spec, spec.operand(**fields), offset)


def from_operand(spec: isa.CommandSpec, operand: int, offset: int = 0) -> Command:
    """The command with this operand."""
    if spec.wide:
        word0 = spec.opcode | 0x4000 | operand >> 32 << 16
        return Command(offset, spec, operand, word0, operand & 0xFFFFFFFF)
    return Command(offset, spec, operand, spec.opcode | operand << 16, None)


def encode(command: Command) -> bytes:
    """The bytes of one command."""
    if command.payload is None:
        return struct.pack("<I", command.word0)
    return struct.pack("<II", command.word0, command.payload)


def encode_all(commands: Iterable[Command]) -> bytes:
    """The bytes of a sequence of commands."""
    return b"".join(map(encode, commands))


# --- driver header ------------------------------------------------------------------------------------------


def parse(cmd_data: bytes) -> CommandStream:
    """Parse a driver payload: COP1 actions or a COP2 header, then the register commands.

    Raises:
        StreamError: no known magic, a truncated or unknown action, or malformed register commands.
        UnknownConfig: the header names an NPU that does not exist.
    """
    config_word, id_word, start, end = _locate(cmd_data)
    family = from_config_word(config_word).family
    return CommandStream(config_word, id_word, start, decode(bytes(cmd_data[start:end]), family, start))


def _locate(data: bytes) -> tuple[int, int, int, int]:
    """(config word, id word, first and end byte of the register commands)."""
    magic = _word(data, 0)
    if magic == COP1_MAGIC:
        return _locate_cop1(data)
    if magic == COP2_MAGIC:
        return _locate_cop2(data)
    raise StreamError(f"driver payload starts with {magic:#010x}, neither COP1 nor COP2", offset=0)


def _word(data: bytes, offset: int) -> int:
    if offset + 4 > len(data):
        raise StreamError("driver payload ends early", offset=offset)
    return int.from_bytes(data[offset : offset + 4], "little")


def _locate_cop1(data: bytes) -> tuple[int, int, int, int]:
    config: tuple[int, int] | None = None
    offset = 4
    while True:
        action = _word(data, offset)
        kind = action & 0xFF
        if kind == _ACTION_CONFIG:
            config = _word(data, offset + 4), _word(data, offset + 8)
            offset += 12
        elif kind == _ACTION_NOP:
            offset += 4
        elif kind == _ACTION_COMMANDS:
            break
        else:
            raise StreamError(f"driver action {kind} is not supported", offset=offset)
    if config is None:
        raise StreamError("driver payload has no optimiser configuration", offset=offset)
    words = (action >> 16) | (action >> 8 & 0xFF) << 16
    start = offset + 4
    if start + 4 * words > len(data):
        raise StreamError(f"driver payload announces {words} command words, fewer follow", offset=offset)
    return *config, start, start + 4 * words


def _locate_cop2(data: bytes) -> tuple[int, int, int, int]:
    # "COP2", version, u64 size of what follows; one entry: u32 type 1, u32 length, metadata, 0xFF up to a
    # multiple of 16, commands. Metadata: u32 length, "VEUM", version, length of the rest, CONFIG, ID, flags,
    # staging size.
    total = _word(data, 8) | _word(data, 12) << 32
    end = 16 + total
    if end > len(data):
        raise StreamError(f"COP2 header announces {total} bytes, fewer follow", offset=8)
    if _word(data, 16) != 1:
        raise StreamError(f"COP2 entry type {_word(data, 16)} is not supported", offset=16)
    metadata = _word(data, 24)
    if _word(data, 28) != _VEUM_MAGIC:
        raise StreamError("COP2 metadata has no VEUM mark", offset=28)
    start = (24 + metadata + 15) // 16 * 16
    return _word(data, 40), _word(data, 44), start, end


# --- listing ------------------------------------------------------------------------------------------------


def disassemble(stream: CommandStream | Iterable[Command]) -> Iterator[str]:
    """One line a command: byte offset, raw words, name, fields, and reserved bits if any is set."""
    for item in stream.commands if isinstance(stream, CommandStream) else stream:
        payload = "        " if item.payload is None else f"{item.payload:08x}"
        text = [f"{item.offset:06x}  {item.word0:08x} {payload}  {item.name}"]
        text += [f"{name}={_show(value)}" for name, value in item.fields.items()]
        if item.reserved:
            text.append(f"reserved={item.reserved:#x}")
        yield " ".join(text)


def _show(value: int) -> str:
    name = getattr(value, "name", None)
    if name is not None:
        return name
    return str(value) if -1024 < value < 1024 else hex(value)

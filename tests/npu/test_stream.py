# SPDX-License-Identifier: Apache-2.0
"""Driver headers, listing, and the errors of malformed streams."""

from __future__ import annotations

import struct

import golden
import pytest

from npu import stream
from npu.config import Family, npu_config
from npu.container import parse_velabin
from npu.errors import StreamError

U85 = npu_config("ethos-u85-256")


def cop1(commands: bytes, nops: int = 3) -> bytes:
    words = [stream.COP1_MAGIC, 0x00100001, U85.config_word, U85.id_word, *[5] * nops]
    return struct.pack(f"<{len(words) + 1}I", *words, 2 | len(commands) // 4 << 16) + commands


def cop2(commands: bytes) -> bytes:
    metadata = struct.pack("<I4sIIIIIQ", 36, b"VEUM", 1, 20, U85.config_word, U85.id_word, 1, 0) + b"\xff" * 4
    entry = struct.pack("<II", 1, len(metadata) + len(commands)) + metadata + commands
    return struct.pack("<4sIQ", b"COP2", 1, len(entry)) + entry


STOP = stream.encode(stream.command(Family.U85, "OP_STOP", mask=0xFFFF))
SETUP = stream.encode(stream.command(Family.U85, "OFM_BASE0", address=0x12_3456_7890))


def test_cop1() -> None:
    parsed = stream.parse(cop1(SETUP + STOP))
    assert (parsed.config_word, parsed.id_word, parsed.base_offset) == (U85.config_word, U85.id_word, 32)
    assert [(c.offset, c.name) for c in parsed.commands] == [(32, "OFM_BASE0"), (40, "OP_STOP")]


def test_cop2() -> None:
    parsed = stream.parse(cop2(SETUP + STOP))
    assert (parsed.config_word, parsed.id_word, parsed.base_offset) == (U85.config_word, U85.id_word, 64)
    assert [c.name for c in parsed.commands] == ["OFM_BASE0", "OP_STOP"]


def test_listing_has_offset_words_and_fields() -> None:
    lines = list(stream.disassemble(stream.parse(cop1(SETUP + STOP))))
    assert lines == [
        "000020  00124010 34567890  OFM_BASE0 address=0x1234567890",
        "000028  ffff0000           OP_STOP mask=0xffff",
    ]


@pytest.mark.parametrize(
    ("data", "text", "offset"),
    [
        (b"", "ends early", 0),
        (b"COPX" + bytes(12), "neither COP1 nor COP2", 0),
        (cop1(STOP)[:20], "ends early", 20),
        (cop1(STOP)[:-4], "fewer follow", 28),
        (cop1(STOP, nops=0).replace(struct.pack("<I", 0x00100001), struct.pack("<I", 3)), "action 3", 4),
        (cop1(SETUP[:4]), "two-word", 32),
        (cop1(struct.pack("<I", 0x00000009)), "0x00000009", 32),
        (cop1(struct.pack("<I", 0x00008100)), "0x00008100", 32),
        (cop2(STOP)[:-4], "fewer follow", 8),
        (cop2(STOP).replace(b"VEUM", b"VEUN"), "VEUM", 28),
    ],
)
def test_malformed(data: bytes, text: str, offset: int) -> None:
    with pytest.raises(StreamError, match=text) as caught:
        stream.parse(data)
    assert caught.value.offset == offset


@pytest.mark.parametrize("name", golden.NAMES)
def test_golden_streams_encode_to_themselves(name: str) -> None:
    data = parse_velabin(golden.load(name).container).cmd_data
    parsed = stream.parse(data)
    assert data[parsed.base_offset :] == stream.encode_all(parsed.commands)
    assert parsed.commands[-1].name == "OP_STOP"
    assert not any(command.reserved for command in parsed.commands)

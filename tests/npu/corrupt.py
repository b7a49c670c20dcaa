# SPDX-License-Identifier: Apache-2.0
"""Ways to break a VelaBin container, each named after what it breaks.

`python -m oracle.make_golden` writes the results to tests/data/corrupt; test_corrupt.py says which
error each must give.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType

from npu import stream
from npu.container import parse_velabin

_HEADER = 32


def _block(container: bytes, name: str) -> tuple[int, int]:
    """(offset of the block's header, size of its data)."""
    offset = container.index(name.encode().ljust(16, b"\0"))
    return offset, struct.unpack_from("<I", container, offset + 16)[0]


def with_block(container: bytes, name: str, data: bytes) -> bytes:
    """The container with another content of one block."""
    offset, size = _block(container, name)
    header = struct.pack("<16sI12x", name.encode(), len(data))
    end = offset + _HEADER + -(-size // 16) * 16
    return container[:offset] + header + data + bytes(-len(data) % 16) + container[end:]


def with_commands(container: bytes, commands: bytes) -> bytes:
    """The container with other register commands; the driver header announces their new length."""
    cmd_data = parse_velabin(container).cmd_data
    start = stream.parse(cmd_data).base_offset
    words = len(commands) // 4
    action = 2 | (words >> 16) << 8 | (words & 0xFFFF) << 16
    return with_block(container, "cmd_data", cmd_data[: start - 4] + struct.pack("<I", action) + commands)


def _with_operand(container: bytes, name: str, **fields: int) -> bytes:
    """Every command of that name gets these field values."""
    parsed = stream.parse(parse_velabin(container).cmd_data)
    commands = [
        stream.from_operand(item.spec, item.spec.operand(**(item.fields | fields)))
        if item.name == name
        else item
        for item in parsed.commands
    ]
    assert any(item.name == name for item in commands)
    return with_commands(container, stream.encode_all(commands))


def _cut_inside_command(container: bytes) -> bytes:
    commands = stream.parse(parse_velabin(container).cmd_data).commands
    last_wide = max(number for number, item in enumerate(commands) if item.payload is not None)
    return with_commands(container, stream.encode_all(commands[: last_wide + 1])[:-4])


def _branch_to_itself(container: bytes) -> bytes:
    branch = struct.pack("<II", 0x4100, 0)  # OP_BRANCH to byte 0, always
    return with_commands(container, branch)


def _unknown_opcode(container: bytes) -> bytes:
    return with_commands(container, struct.pack("<I", 0x0FF))


def _unknown_npu(container: bytes) -> bytes:
    cmd_data = bytearray(parse_velabin(container).cmd_data)
    struct.pack_into("<I", cmd_data, 8, 0xF000001F)  # the CONFIG word of the driver header
    return with_block(container, "cmd_data", bytes(cmd_data))


def _outputs_outside_scratch(container: bytes) -> bytes:
    offset, size = _block(container, "outputs")
    data = bytearray(container[offset + _HEADER : offset + _HEADER + size])
    struct.pack_into("<i", data, 4 + 7 * 4, 0x7FFF0000)  # byte offset of the first tensor
    return with_block(container, "outputs", bytes(data))


def _small_scratch(container: bytes) -> bytes:
    return with_block(container, "scratch_size", struct.pack("<I", 16))


CORRUPTIONS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {
        "empty": lambda container: b"",
        "truncated_container": lambda container: container[: len(container) * 2 // 3],
        "bad_container_magic": lambda container: container.replace(b"vela_bin_stream", b"vela_bad_stream"),
        "bad_driver_magic": lambda container: container.replace(b"COP1", b"COP7"),
        "unknown_npu": _unknown_npu,
        "unknown_opcode": _unknown_opcode,
        "cut_inside_command": _cut_inside_command,
        "weight_length_past_region": lambda container: _with_operand(
            container, "WEIGHT_LENGTH", length=0x00FF_FFF0
        ),
        "weights_truncated": lambda container: _with_operand(container, "WEIGHT_LENGTH", length=16),
        "scales_truncated": lambda container: _with_operand(container, "SCALE_LENGTH", length=16),
        "weight_base_outside_region": lambda container: _with_operand(
            container, "WEIGHT_BASE", address=0x7FFF_FFF0
        ),
        "ifm_outside_region": lambda container: _with_operand(container, "IFM_BASE0", address=0x7FFF_FFF0),
        "ofm_outside_region": lambda container: _with_operand(container, "OFM_BASE0", address=0x7FFF_FFF0),
        "negative_stride": lambda container: _with_operand(container, "IFM_STRIDE_Y", stride=-(1 << 30)),
        "outputs_outside_scratch": _outputs_outside_scratch,
        "small_scratch": _small_scratch,
        "branch_to_itself": _branch_to_itself,
    }
)
"""Name -> the container broken that way."""

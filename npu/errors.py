# SPDX-License-Identifier: Apache-2.0
"""Typed errors of the NPU model: each says what is wrong and, where it is known, at which opcode and byte."""

from __future__ import annotations


class NpuError(Exception):
    """Base of everything the NPU model raises on purpose.

    Attributes:
        what: one sentence without a final full stop.
        opcode: name or number of the command being decoded or executed, None outside commands.
        offset: byte offset in the stream being read (commands, container or weights), None if unknown.
    """

    def __init__(self, what: str, *, opcode: str | int | None = None, offset: int | None = None):
        self.what = what
        self.opcode = opcode
        self.offset = offset
        super().__init__(what)

    def located(self, *, opcode: str | int | None = None, offset: int | None = None) -> NpuError:
        """Fill in the place where it is still unknown, so that an outer layer can add what it knows."""
        if self.opcode is None:
            self.opcode = opcode
        if self.offset is None:
            self.offset = offset
        return self

    def __str__(self) -> str:
        place = []
        if self.opcode is not None:
            place.append(f"opcode {self.opcode:#05x}" if isinstance(self.opcode, int) else self.opcode)
        if self.offset is not None:
            place.append(f"byte {self.offset:#x}")
        return f"{self.what} ({', '.join(place)})" if place else self.what


class UnknownConfig(NpuError):
    """An NPU name or CONFIG register value that is none of the known configurations."""


class ContainerError(NpuError):
    """A malformed VelaBin container."""


class StreamError(NpuError):
    """A malformed command stream."""


class WeightStreamError(NpuError):
    """A truncated or malformed weight or scale stream, or one that does not fit its layout.

    `bit` is the bit position in the stream where it is known (bit 0 = LSB of byte 0); `offset` its byte.
    """

    def __init__(
        self,
        what: str,
        *,
        bit: int | None = None,
        opcode: str | int | None = None,
        offset: int | None = None,
    ):
        if offset is None and bit is not None:
            offset = bit // 8
        super().__init__(what, opcode=opcode, offset=offset)
        self.bit = bit

    def __str__(self) -> str:
        return super().__str__() if self.bit is None else f"{super().__str__()}, weight stream bit {self.bit}"


class BusError(NpuError):
    """An access outside its memory region: `size` bytes at `address` (byte offset in region `region`)."""

    def __init__(
        self,
        region: int,
        address: int,
        size: int,
        *,
        opcode: str | int | None = None,
        offset: int | None = None,
    ):
        super().__init__(
            f"access of {size} bytes at {address:#x} is outside region {region}", opcode=opcode, offset=offset
        )
        self.region = region
        self.address = address
        self.size = size


class NotModelled(NpuError):
    """The stream is valid but asks for something the model does not implement."""

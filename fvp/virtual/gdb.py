# SPDX-License-Identifier: Apache-2.0
"""Client of QEMU's user-mode gdbstub: the part of the GDB remote protocol a device model needs.

A simulated CPU that touches a device stops here thousands of times, so a whole stop (write registers, resume,
wait, read registers) is one `send` and one stretch of replies. QEMU's stub in user mode reads its socket at
most `READ_CHUNK` bytes at a time, parses the whole chunk, and after every reply blocks until it has read a
``+`` from the *socket* (one that the parser has swallowed does not count). So each group of packets is padded
in front to exactly one chunk, and the acknowledgements of its replies follow it.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fvp.platform import Deadline

READ_CHUNK = 256
"""Bytes QEMU's user-mode stub takes from its socket in one read."""

_LONGEST_REPLY = 1 << 16

SIGILL, SIGTRAP, SIGSEGV = 4, 5, 11
CORE_REGISTERS = 17
"""Words of a ``g`` reply for an M-profile CPU: r0-r15, then xPSR."""

SP, LR, PC, XPSR = 13, 14, 15, 16
_CORE = struct.Struct(f"<{CORE_REGISTERS}I")


class StubError(Exception):
    """The stub closed the connection or broke the protocol."""


@dataclass(frozen=True)
class Stop:
    """Why the guest stopped, and its core registers then (r0-r15, xPSR; empty when it has ended).

    `signal` is the GDB signal number; `ended` tells that the guest process is gone; `host_call` that it was
    about to make a system call of the host.
    """

    signal: int
    registers: tuple[int, ...] = ()
    ended: bool = False
    host_call: bool = False


def packet(payload: bytes) -> bytes:
    """`payload` framed as ``$payload#checksum``."""
    return b"$%b#%02x" % (payload, sum(payload) & 0xFF)


def _groups(packets: Iterable[bytes]) -> Iterable[list[bytes]]:
    """Split framed packets into runs that fit one chunk each."""
    group: list[bytes] = []
    size = 0
    for item in packets:
        if size + len(item) > READ_CHUNK and group:
            yield group
            group, size = [], 0
        group.append(item)
        size += len(item)
    yield group


def framed(payloads: Sequence[bytes]) -> bytes:
    """The bytes that make QEMU's stub process `payloads` in order and answer each, none left owing.

    Raises:
        ValueError: one payload does not fit a chunk.
    """
    out = bytearray()
    for group in _groups(packet(item) for item in payloads):
        body = b"".join(group)
        if len(body) > READ_CHUNK:
            raise ValueError(f"packet of {len(body)} bytes does not fit the stub's {READ_CHUNK}-byte read")
        out += body.rjust(READ_CHUNK, b"+") + b"+" * len(group)
    return bytes(out)


_GET = framed([b"g"])


class GdbClient:
    """A connection to the stub.

    Args:
        connection: connected stream socket.
        deadline: limit for every wait.
    """

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._socket, self._deadline = connection, deadline
        self._buffer = bytearray()
        self.numbers: Mapping[str, int] = {}
        """Register numbers by name, once `handshake` has run."""

    def handshake(self) -> None:
        """Read the target description; QEMU refuses to write registers before that."""
        self._ask(b"qSupported:xmlRegisters=arm")
        self.numbers = _register_numbers(self._annex)
        if "xpsr" not in self.numbers:
            raise StubError("the stub describes no M-profile CPU")
        self._ask(b"QCatchSyscalls:1")

    def core_registers(self) -> tuple[int, ...]:
        """r0-r15 and xPSR."""
        return _words(self._ask(b"g"))

    def read_registers(self, names: Sequence[str]) -> dict[str, int]:
        """Values of any registers of the target description, in one exchange."""
        replies = self._exchange([b"p%x" % self.numbers[name] for name in names])
        return {
            name: int.from_bytes(_hex(reply), "little") for name, reply in zip(names, replies, strict=True)
        }

    def write_registers(self, values: Mapping[str, tuple[int, int]]) -> None:
        """Set any registers: name to (value, size in bytes)."""
        self._exchange([_write(self.numbers[name], *item) for name, item in values.items()])

    def insert_breakpoint(self, address: int) -> None:
        """Stop before the instruction at `address` with SIGTRAP."""
        self._ask(b"Z0,%x,2" % address)

    def remove_breakpoint(self, address: int) -> None:
        """Undo `insert_breakpoint`."""
        self._ask(b"z0,%x,2" % address)

    def resume(self, values: Mapping[int, int], *, step: bool = False) -> Stop:
        """Write core registers, continue (or step one instruction), wait for the stop, read core registers.

        Raises:
            PlatformTimeout: the guest did not stop in time.
            StubError: the stub went away.
        """
        writes = [
            _write(self.numbers["xpsr"] if index == XPSR else index, values[index], 4) for index in values
        ]
        self._send(framed([*writes, b"s" if step else b"c"]) + _GET)
        for _ in writes:
            self._expect_ok(self._reply())
        reason = self._reply()
        match = re.match(rb"([TSWX])([0-9a-f]{2})", reason)
        if match is None:
            raise StubError(f"unexpected stop reply {reason[:40]!r}")
        signal = int(match[2], 16)
        if match[1] in b"WX":
            return Stop(signal, ended=True)
        return Stop(signal, _words(self._reply()), host_call=b"syscall_entry" in reason)

    def _annex(self, name: str) -> str:
        text, offset = b"", 0
        while True:
            part = self._ask(b"qXfer:features:read:%b:%x,fff" % (name.encode(), offset))
            text += part[1:]
            offset += len(part) - 1
            if part[:1] != b"m":
                return text.decode("ascii", "replace")

    def _ask(self, payload: bytes) -> bytes:
        return self._exchange([payload])[0]

    def _exchange(self, payloads: Sequence[bytes]) -> list[bytes]:
        self._send(framed(payloads))
        replies = [self._reply() for _ in payloads]
        for payload, reply in zip(payloads, replies, strict=True):
            if payload[:1] in b"PZz":
                self._expect_ok(reply)
            elif reply[:1] == b"E" and len(reply) == 3:
                raise StubError(f"the stub refused {payload[:40]!r}: {reply!r}")
        return replies

    @staticmethod
    def _expect_ok(reply: bytes) -> None:
        if reply != b"OK":
            raise StubError(f"the stub answered {reply!r} in place of OK")

    def _send(self, data: bytes) -> None:
        self._socket.settimeout(self._deadline.remaining("the simulator stopped listening"))
        try:
            self._socket.sendall(data)
        except TimeoutError:
            self._deadline.remaining("the simulator stopped listening")
            raise StubError("the stub does not read its socket") from None
        except OSError as error:
            raise StubError(f"the stub closed the connection ({error})") from error

    def _reply(self) -> bytes:
        """The payload of the next packet; acknowledgements in front of it are skipped."""
        while True:
            end = self._buffer.find(b"#")
            if end >= 0 and len(self._buffer) >= end + 3:
                return self._take(end)
            if len(self._buffer) > _LONGEST_REPLY:
                raise StubError(f"no packet in {len(self._buffer)} bytes")
            self._buffer += self._receive()

    def _take(self, end: int) -> bytes:
        frame = bytes(self._buffer[: end + 3]).lstrip(b"+")
        del self._buffer[: end + 3]
        payload = frame[1:-3]
        if frame[:1] != b"$" or frame != packet(payload):
            raise StubError(f"malformed packet {frame[:40]!r}")
        return payload

    def _receive(self) -> bytes:
        waiting = "the firmware neither ended nor touched a device"
        while True:
            self._socket.settimeout(self._deadline.remaining(waiting))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                continue
            except OSError as error:
                raise StubError(f"the stub closed the connection ({error})") from error
            if not data:
                raise StubError("the stub closed the connection")
            return data


def _write(number: int, value: int, size: int) -> bytes:
    """``P`` packet. Of xPSR QEMU takes the flags; the IT state is not writable through it."""
    return b"P%x=%b" % (number, value.to_bytes(size, "little").hex().encode())


def _hex(reply: bytes) -> bytes:
    try:
        return bytes.fromhex(reply.decode())
    except ValueError as error:
        raise StubError(f"malformed register value {reply[:40]!r}") from error


def _words(reply: bytes) -> tuple[int, ...]:
    raw = _hex(reply)
    if len(raw) < _CORE.size:
        raise StubError(f"{len(raw)} register bytes; an M-profile CPU has at least {_CORE.size}")
    return _CORE.unpack_from(raw)


def _register_numbers(annex: Callable[[str], str]) -> dict[str, int]:
    """Register numbers from the target description: given by ``regnum``, else one more than the last."""
    numbers: dict[str, int] = {}
    following = 0
    for feature in re.findall(r'<xi:include href="([^"]+)"', annex("target.xml")):
        for attributes in re.findall(r"<reg ([^>]*)>", annex(feature)):
            fields = dict(re.findall(r'(\w+)="([^"]*)"', attributes))
            number = int(fields.get("regnum", following))
            numbers[fields["name"]] = number
            following = number + 1
    return numbers

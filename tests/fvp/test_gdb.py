# SPDX-License-Identifier: Apache-2.0
"""The remote-protocol client against a stub that reads its socket exactly as QEMU's does in user mode."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fvp.platform import Deadline
from fvp.virtual.gdb import READ_CHUNK, XPSR, GdbClient, Stop, StubError, framed, packet
from report.errors import PlatformTimeout

TARGET = {
    "target.xml": '<target><xi:include href="core.xml"/><xi:include href="vfp.xml"/></target>',
    "core.xml": "<feature>"
    + "".join(f'<reg name="r{n}" bitsize="32"/>' for n in range(16))
    + '<reg name="xpsr" bitsize="32" regnum="25"/></feature>',
    "vfp.xml": '<feature><reg name="d0" bitsize="64"/><reg name="d1" bitsize="64"/></feature>',
}


class Stub:
    """A guest of registers only. Each reply blocks until a ``+`` is read from the socket itself."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.registers = [0] * 16
        self.xpsr = 0x0100_0000
        self.doubles = {26: 0, 27: 0}
        self.stop_replies = ["T0bthread:p1.1;"]
        self.requests: list[str] = []
        self.refuse = ""
        self.corrupt = False
        self.gone = False

    def serve(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client has had enough
            self.read()

    def read(self) -> None:
        pending = bytearray()
        while chunk := self.socket.recv(READ_CHUNK):
            pending += chunk
            while (end := pending.find(b"#")) >= 0 and len(pending) >= end + 3:
                frame = bytes(pending[: end + 3])
                del pending[: end + 3]
                payload = frame[frame.index(b"$") + 1 : -3]
                assert frame.endswith(packet(payload)), "checksum"
                self.socket.sendall(b"+")
                if self.gone:
                    self.socket.close()
                    return
                self.reply(self.answer(payload.decode()))

    def reply(self, text: str) -> None:
        frame = packet(text.encode())
        if self.corrupt:
            frame = frame[:-1] + b"~"
        self.socket.sendall(frame)
        if self.socket.recv(1) != b"+":
            raise AssertionError("no acknowledgement on the socket")

    def answer(self, request: str) -> str:
        self.requests.append(request)
        if self.refuse and request.startswith(self.refuse):
            return "E22"
        if request.startswith("qXfer"):
            name, place = request.split(":")[3:]
            offset, size = (int(part, 16) for part in place.split(","))
            part = TARGET[name][offset : offset + min(size, 70)]
            return ("l" if offset + len(part) >= len(TARGET[name]) else "m") + part
        if request == "g":
            words = [*self.registers, self.xpsr]
            return b"".join(word.to_bytes(4, "little") for word in words).hex()
        if request[0] == "p":
            return self.doubles[int(request[1:], 16)].to_bytes(8, "little").hex()
        if request[0] == "P":
            number, value = request[1:].split("=")
            self.store(int(number, 16), int.from_bytes(bytes.fromhex(value), "little"))
            return "OK"
        if request in ("c", "s"):
            return self.stop_replies.pop(0)
        return "OK" if request[0] in "Zz" else ""

    def store(self, number: int, value: int) -> None:
        if number < 16:
            self.registers[number] = value
        elif number == 25:
            self.xpsr = value
        else:
            self.doubles[number] = value


@pytest.fixture
def pair() -> Iterator[tuple[Stub, GdbClient]]:
    near, far = socket.socketpair()
    stub = Stub(far)
    thread = threading.Thread(target=stub.serve, daemon=True)
    thread.start()
    client = GdbClient(near, Deadline(2, "test"))
    client.handshake()
    yield stub, client
    near.close()
    thread.join(2)
    far.close()
    assert not thread.is_alive()


def test_target_description_gives_register_numbers(pair: tuple[Stub, GdbClient]) -> None:
    _, client = pair
    assert client.numbers["r0"] == 0 and client.numbers["r15"] == 15
    assert client.numbers["xpsr"] == 25, "regnum attribute"
    assert (client.numbers["d0"], client.numbers["d1"]) == (26, 27), "one more than the last"


def test_resume_is_one_round_trip_with_any_number_of_writes(pair: tuple[Stub, GdbClient]) -> None:
    stub, client = pair
    values = {index: 0x1000_0000 + index for index in range(16)} | {XPSR: 0x6100_0000}
    stub.requests.clear()
    stop = client.resume(values)
    assert stop == Stop(11, (*(0x1000_0000 + index for index in range(16)), 0x6100_0000))
    assert stub.requests == [*(f"P{n:x}=" + values[n].to_bytes(4, "little").hex() for n in range(16)),
                             "P19=00000061", "c", "g"]  # fmt: skip


def test_step_and_breakpoints(pair: tuple[Stub, GdbClient]) -> None:
    stub, client = pair
    stub.requests.clear()
    stub.stop_replies = ["T05thread:p1.1;"]
    client.insert_breakpoint(0x1234)
    assert client.resume({}, step=True).signal == 5
    client.remove_breakpoint(0x1234)
    assert stub.requests == ["Z0,1234,2", "s", "g", "z0,1234,2"]


def test_wide_registers(pair: tuple[Stub, GdbClient]) -> None:
    _, client = pair
    client.write_registers({"d0": (0x0102_0304_0506_0708, 8), "d1": (9, 8)})
    assert client.read_registers(["d1", "d0"]) == {"d1": 9, "d0": 0x0102_0304_0506_0708}


@pytest.mark.parametrize("reply", ["", "T", "Tzz", "O48"])
def test_unexpected_stop_reply(pair: tuple[Stub, GdbClient], reply: str) -> None:
    stub, client = pair
    stub.stop_replies = [reply]
    with pytest.raises(StubError, match="unexpected stop reply"):
        client.resume({})


@pytest.mark.parametrize("reply", ["W00", "X0b;process:1"])
def test_end_of_the_guest(pair: tuple[Stub, GdbClient], reply: str) -> None:
    stub, client = pair
    stub.stop_replies = [reply]
    stop = client.resume({})
    assert stop.ended and stop.signal == int(reply[1:3], 16)


def test_refused_register_write(pair: tuple[Stub, GdbClient]) -> None:
    stub, client = pair
    stub.refuse = "P"
    with pytest.raises(StubError, match="E22"):
        client.resume({0: 1})


def test_corrupt_reply(pair: tuple[Stub, GdbClient]) -> None:
    stub, client = pair
    stub.corrupt = True
    with pytest.raises(StubError, match="malformed packet"):
        client.core_registers()


def test_closed_connection(pair: tuple[Stub, GdbClient]) -> None:
    stub, client = pair
    stub.gone = True
    with pytest.raises(StubError, match="closed"):
        client.resume({})


def test_stream_without_packets_is_refused() -> None:
    near, far = socket.socketpair()
    with near, far:
        thread = threading.Thread(target=_flood, args=(far,), daemon=True)
        thread.start()
        with pytest.raises(StubError, match="no packet in"):
            GdbClient(near, Deadline(5, "test")).handshake()
        near.close()
        thread.join(5)


def _flood(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"x" * 4096)


def test_stub_of_another_cpu_is_refused() -> None:
    near, far = socket.socketpair()
    stub = Stub(far)
    stub.answer = lambda request: ""  # type: ignore[method-assign]
    thread = threading.Thread(target=stub.serve, daemon=True)
    thread.start()
    with near, far, pytest.raises(StubError, match="no M-profile CPU"):
        GdbClient(near, Deadline(2, "test")).handshake()
    thread.join(2)


def test_silence_ends_at_the_deadline() -> None:
    near, far = socket.socketpair()
    with near, far, pytest.raises(PlatformTimeout):
        GdbClient(near, Deadline(0.05, "test")).handshake()


@given(
    st.lists(st.binary(min_size=1, max_size=200).filter(lambda data: not set(data) & set(b"$#+")), min_size=1)
)
def test_framing_survives_chunked_reads(payloads: list[bytes]) -> None:
    """Whatever is sent, a reader of whole chunks finds each packet, then one acknowledgement for each."""
    data = framed(payloads)
    found = []
    position = 0
    while position < len(data):
        chunk = data[position : position + READ_CHUNK]
        assert len(chunk) == READ_CHUNK
        position += READ_CHUNK
        packets = [part for part in chunk.lstrip(b"+").split(b"$") if part]
        assert data[position : position + len(packets)] == b"+" * len(packets)
        position += len(packets)
        found += [part[:-3] for part in packets]
    assert found == payloads


def test_packet_longer_than_a_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        framed([b"x" * READ_CHUNK])

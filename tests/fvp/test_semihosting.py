# SPDX-License-Identifier: Apache-2.0
"""Semihosting call by call on a plain memory: answers, files, what is refused."""

from __future__ import annotations

import errno
import io
import struct
from pathlib import Path

import pytest

from fvp.virtual.boards import Board, Memory
from fvp.virtual.devices.base import Clock
from fvp.virtual.semihosting import APPLICATION_EXIT, Exit, Operation, Semihosting, Settings

RAM, SIZE = 0x2000_0000, 0x1_0000
BLOCK, TEXT, DATA = RAM, RAM + 0x100, RAM + 0x1000
BOARD = Board("test board", "Cortex-M55", "cortex-m55", 0, (Memory("ram", RAM, SIZE),), (), ())
FAILED = 0xFFFF_FFFF


class PlainMemory:
    """RAM as a byte array; the board's check has to come first."""

    def __init__(self) -> None:
        self.bytes = bytearray(SIZE)

    def read(self, address: int, size: int) -> bytes:
        assert address >= RAM and address + size <= RAM + SIZE
        return bytes(self.bytes[address - RAM : address - RAM + size])

    def write(self, address: int, data: bytes) -> None:
        assert address >= RAM and address + len(data) <= RAM + SIZE
        self.bytes[address - RAM : address - RAM + len(data)] = data


class Guest:
    """A guest that makes calls; `console` is what it wrote, `refused` what it was told off for."""

    def __init__(self, folder: Path, command_line: str = "", keyboard: bytes = b"") -> None:
        self.memory, self.console, self.refused = PlainMemory(), bytearray(), list[str]()
        self.clock = Clock()
        settings = Settings(folder, command_line, (1, 2, 3, 4), None, io.BytesIO(keyboard))
        self.server = Semihosting(
            settings, BOARD, self.memory, self.clock, self.console.extend, self.refused.append
        )

    def call(self, operation: Operation, *words: int) -> int:
        self.memory.write(BLOCK, struct.pack(f"<{len(words)}I", *words))
        return self.server.call(operation, BLOCK)

    def text(self, text: str, address: int = TEXT) -> tuple[int, int]:
        self.memory.write(address, text.encode() + b"\0")
        return address, len(text.encode())

    def open(self, name: str, mode: int) -> int:
        pointer, length = self.text(name)
        return self.call(Operation.SYS_OPEN, pointer, mode, length)

    def errno(self) -> int:
        return self.server.call(Operation.SYS_ERRNO, 0)


def test_file_written_read_and_measured(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    handle = guest.open("a.bin", 5)
    guest.memory.write(DATA, bytes(range(100)))
    assert guest.call(Operation.SYS_WRITE, handle, DATA, 100) == 0
    assert guest.call(Operation.SYS_CLOSE, handle) == 0
    assert (tmp_path / "a.bin").read_bytes() == bytes(range(100))
    handle = guest.open("a.bin", 1)
    assert guest.call(Operation.SYS_FLEN, handle) == 100
    assert guest.call(Operation.SYS_SEEK, handle, 90) == 0
    assert guest.call(Operation.SYS_READ, handle, DATA + 200, 32) == 22
    assert guest.memory.read(DATA + 200, 11) == bytes(range(90, 100)) + b"\0"
    assert guest.call(Operation.SYS_READ, handle, DATA, 8) == 8
    assert guest.call(Operation.SYS_ISTTY, handle) == 0


@pytest.mark.parametrize(("mode", "content"), [(8, b"oldnew"), (4, b"new"), (2, b"new")])
def test_modes(tmp_path: Path, mode: int, content: bytes) -> None:
    (tmp_path / "f").write_bytes(b"old")
    guest = Guest(tmp_path)
    handle = guest.open("f", mode)
    guest.memory.write(DATA, b"new")
    assert guest.call(Operation.SYS_WRITE, handle, DATA, 3) == 0
    guest.server.close()
    assert (tmp_path / "f").read_bytes() == content


def test_several_files_at_once_and_handles_come_back(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    handles = [guest.open(f"f{n}", 4) for n in range(4)]
    assert len(set(handles)) == 4 and 0 not in handles
    guest.call(Operation.SYS_CLOSE, handles[1])
    assert guest.open("g", 4) == handles[1]
    assert guest.call(Operation.SYS_CLOSE, 99) == FAILED and guest.errno() == errno.EBADF


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "link/passwd", ".."])
def test_path_outside_the_folder_is_refused_with_a_line(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "cwd"
    folder.mkdir()
    (folder / "link").symlink_to("/etc")
    (tmp_path / "x").write_text("secret")
    guest = Guest(folder)
    for mode in (0, 4):
        assert guest.open(name, mode) == FAILED and guest.errno() == errno.EACCES
    assert guest.call(Operation.SYS_REMOVE, *guest.text(name)) == FAILED
    inside, outside = guest.text("y", TEXT), guest.text(name, TEXT + 64)
    (folder / "y").write_text("")
    assert guest.call(Operation.SYS_RENAME, *inside, *outside) == FAILED
    assert len(guest.refused) == 4 and all("outside semihosting-cwd" in line for line in guest.refused)
    assert (tmp_path / "x").read_text() == "secret" and (folder / "y").exists()


def test_absolute_path_inside_the_folder_is_a_file_of_it(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("abc")
    guest = Guest(tmp_path)
    assert guest.call(Operation.SYS_FLEN, guest.open(str(tmp_path / "f"), 0)) == 3


def test_rename_remove_and_missing_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("abc")
    guest = Guest(tmp_path)
    assert guest.call(Operation.SYS_RENAME, *guest.text("f"), *guest.text("g", TEXT + 64)) == 0
    assert (tmp_path / "g").read_text() == "abc"
    assert guest.call(Operation.SYS_REMOVE, *guest.text("g")) == 0
    assert guest.call(Operation.SYS_REMOVE, *guest.text("g")) == FAILED and guest.errno() == errno.ENOENT
    assert guest.open("g", 0) == FAILED and not guest.refused


def test_console(tmp_path: Path) -> None:
    guest = Guest(tmp_path, keyboard=b"line\nrest")
    out, keyboard = guest.open(":tt", 4), guest.open(":tt", 0)
    guest.memory.write(DATA, b"one ")
    assert guest.call(Operation.SYS_WRITE, out, DATA, 4) == 0
    guest.text("two " + "x" * 600, DATA)
    guest.server.call(Operation.SYS_WRITE0, DATA)
    guest.server.call(Operation.SYS_WRITEC, DATA)
    assert guest.console == b"one two " + b"x" * 600 + b"t"
    assert guest.call(Operation.SYS_ISTTY, out) == 1
    assert guest.call(Operation.SYS_READ, keyboard, DATA, 64) == 64 - 5
    assert guest.memory.read(DATA, 5) == b"line\n"
    assert guest.server.call(Operation.SYS_READC, 0) == ord("r")


def test_string_at_the_end_of_memory(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.memory.write(RAM + SIZE - 3, b"ab\0")
    guest.server.call(Operation.SYS_WRITE0, RAM + SIZE - 3)
    assert guest.console == b"ab"
    guest.memory.write(RAM + SIZE - 3, b"abc")
    assert guest.server.call(Operation.SYS_WRITE0, RAM + SIZE - 3) == FAILED


def test_command_line_heap_and_time(tmp_path: Path) -> None:
    guest = Guest(tmp_path, command_line="executor_runner -m program.pte")
    assert guest.call(Operation.SYS_GET_CMDLINE, DATA, 80) == 0
    assert guest.memory.read(DATA, 31) == b"executor_runner -m program.pte\0"
    assert struct.unpack("<I", guest.memory.read(BLOCK + 4, 4)) == (30,)
    assert guest.call(Operation.SYS_GET_CMDLINE, DATA, 30) == FAILED
    assert guest.call(Operation.SYS_HEAPINFO, DATA) == 0
    assert struct.unpack("<4I", guest.memory.read(DATA, 16)) == (1, 2, 3, 4)
    guest.clock.advance(1 << 33)
    assert guest.server.call(Operation.SYS_ELAPSED, DATA) == 0
    assert struct.unpack("<Q", guest.memory.read(DATA, 8)) == (1 << 33,)
    assert guest.server.call(Operation.SYS_TICKFREQ, 0) == BOARD.clock_hz
    assert guest.server.call(Operation.SYS_TIME, 0) > 1_700_000_000
    assert guest.server.call(Operation.SYS_CLOCK, 0) < 1000


def test_features_announce_exit_extended(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    handle = guest.open(":semihosting-features", 0)
    assert guest.call(Operation.SYS_READ, handle, DATA, 5) == 0
    assert guest.memory.read(DATA, 4) == b"SHFB" and guest.memory.read(DATA + 4, 1)[0] & 1


@pytest.mark.parametrize(
    ("operation", "argument", "status"),
    [
        (Operation.SYS_EXIT, APPLICATION_EXIT, 0),
        (Operation.SYS_EXIT, 0x2_0024, 1),
        (Operation.SYS_EXIT_EXTENDED, (APPLICATION_EXIT, 42), 42),
        (Operation.SYS_EXIT_EXTENDED, (0x2_0023, 0), 1),
    ],
)
def test_exit(tmp_path: Path, operation: Operation, argument: int | tuple[int, int], status: int) -> None:
    guest = Guest(tmp_path)
    with pytest.raises(Exit) as end:
        if isinstance(argument, tuple):
            guest.call(operation, *argument)
        else:
            guest.server.call(operation, argument)
    assert end.value.status == status
    assert ("error" in str(end.value) or "overflow" in str(end.value)) == (status == 1)


def test_host_commands_are_not_run(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    assert guest.call(Operation.SYS_SYSTEM, *guest.text(f"touch {tmp_path}/ran")) == FAILED
    assert "not run" in guest.refused[0] and not (tmp_path / "ran").exists()


def test_pointer_outside_memory_and_unknown_operation(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    handle = guest.open("f", 4)
    assert guest.call(Operation.SYS_WRITE, handle, 0x1000, 4) == FAILED and guest.errno() == errno.EFAULT
    assert guest.call(Operation.SYS_WRITE, handle, RAM + SIZE - 2, 4) == FAILED
    assert guest.server.call(Operation.SYS_OPEN, 0xFFFF_FFF0) == FAILED
    assert guest.server.call(0x99, 0) == FAILED and guest.errno() == errno.ENOSYS
    assert guest.open("f", 12) == FAILED and guest.errno() == errno.EINVAL

# SPDX-License-Identifier: Apache-2.0
"""Semihosting (Arm, "Semihosting for AArch32 and AArch64"): files, console and exit for a guest.

The guest asks with ``bkpt 0xab``: operation number in r0, a value or the address of an argument block in r1,
answer in r0. Files are confined to one folder: what a path resolves to must lie in it.
"""

from __future__ import annotations

import enum
import errno
import io
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from fvp.virtual.boards import Board
from fvp.virtual.devices.base import Clock


class Operation(enum.IntEnum):
    """Operation numbers."""

    SYS_OPEN = 0x01
    SYS_CLOSE = 0x02
    SYS_WRITEC = 0x03
    SYS_WRITE0 = 0x04
    SYS_WRITE = 0x05
    SYS_READ = 0x06
    SYS_READC = 0x07
    SYS_ISERROR = 0x08
    SYS_ISTTY = 0x09
    SYS_SEEK = 0x0A
    SYS_FLEN = 0x0C
    SYS_TMPNAM = 0x0D
    SYS_REMOVE = 0x0E
    SYS_RENAME = 0x0F
    SYS_CLOCK = 0x10
    SYS_TIME = 0x11
    SYS_SYSTEM = 0x12
    SYS_ERRNO = 0x13
    SYS_GET_CMDLINE = 0x15
    SYS_HEAPINFO = 0x16
    SYS_EXIT = 0x18
    SYS_EXIT_EXTENDED = 0x20
    SYS_ELAPSED = 0x30
    SYS_TICKFREQ = 0x31


APPLICATION_EXIT = 0x2_0026
"""ADP_Stopped_ApplicationExit, the reason of an orderly end."""

_REASONS = {0x2_0022: "run-time error", 0x2_0023: "unknown run-time error", 0x2_0024: "stack overflow"}
_MODES = ("r", "r", "r+", "r+", "w", "w", "w+", "w+", "a", "a", "a+", "a+")
"""By mode number; every other one means binary, which makes no difference here."""

_CONSOLE, _FEATURES = b":tt", b":semihosting-features"
_FEATURE_BYTES = b"SHFB\x03"  # SH_EXT_EXIT_EXTENDED, SH_EXT_STDOUT_STDERR
_FAILED = 0xFFFF_FFFF
_STRING_PIECE = 256


File: TypeAlias = io.RawIOBase | io.BufferedIOBase
"""What a handle stands for: a file of the host, or bytes that look like one."""


class Keyboard(Protocol):
    """Where console input comes from."""

    def readline(self, limit: int, /) -> bytes: ...


class Memory(Protocol):
    """Guest memory by address."""

    def read(self, address: int, size: int) -> bytes: ...
    def write(self, address: int, data: bytes) -> None: ...


@dataclass(frozen=True)
class Settings:
    """What the guest gets from the host.

    Attributes:
        folder: where its files are.
        command_line: answer to SYS_GET_CMDLINE.
        heap: heap base and limit, stack base and limit for SYS_HEAPINFO; 0 leaves the choice to the guest.
        output: takes what the guest writes to its console; None for the machine's console.
        keyboard: what the guest reads from its console; None for an empty one.
    """

    folder: Path
    command_line: str = ""
    heap: tuple[int, int, int, int] = (0, 0, 0, 0)
    output: Callable[[bytes], None] | None = None
    keyboard: Keyboard | None = None


class Exit(Exception):
    """The guest has ended its run with `status`; `reason` is empty for an orderly end."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Semihosting:
    """Serves the calls of one guest.

    Args:
        settings: see there.
        board: its memories are what an argument may point to.
        memory: the guest's memory.
        clock: the virtual clock.
        console: takes what the guest writes to its console unless the settings say otherwise.
        report: told in one line of every call that is refused.
    """

    def __init__(
        self,
        settings: Settings,
        board: Board,
        memory: Memory,
        clock: Clock,
        console: Callable[[bytes], None],
        report: Callable[[str], None],
    ) -> None:
        self._settings, self._board, self._memory, self._clock = settings, board, memory, clock
        self._output, self._report = settings.output or console, report
        self._root = os.path.realpath(settings.folder)
        self._started = time.monotonic()
        self._errno = 0
        self._files: dict[int, File | None] = {}
        """By handle; None is the console."""

    def call(self, operation: int, parameter: int) -> int:
        """Serve one call; the value for r0.

        Raises:
            Exit: the guest has ended its run.
        """
        serve = _OPERATIONS.get(operation)
        if serve is None:
            self._report(f"semihosting operation {operation:#x} does not exist")
            return self._fail(errno.ENOSYS)
        try:
            return serve(self, parameter) & 0xFFFF_FFFF
        except OSError as error:
            return self._fail(error.errno or errno.EIO)

    def close(self) -> None:
        """Close what the guest has left open."""
        for file in self._files.values():
            if file is not None:
                file.close()
        self._files.clear()

    def _open(self, block: int) -> int:
        pointer, mode, length = self._words(block, 3)
        name = self._bytes(pointer, length)
        if mode >= len(_MODES):
            return self._fail(errno.EINVAL)
        if name == _CONSOLE:
            return self._handle(None)
        if name == _FEATURES:
            return self._handle(io.BytesIO(_FEATURE_BYTES))
        return self._handle(io.FileIO(self._path(name), _MODES[mode]))

    def _handle(self, file: File | None) -> int:
        number = next(n for n in range(1, len(self._files) + 2) if n not in self._files)
        self._files[number] = file
        return number

    def _close(self, block: int) -> int:
        (handle,) = self._words(block, 1)
        file = self._file(handle)
        del self._files[handle]
        if file is not None:
            file.close()
        return 0

    def _write_character(self, address: int) -> int:
        self._output(self._bytes(address, 1))
        return 0

    def _write_string(self, address: int) -> int:
        self._output(self._string(address))
        return 0

    def _write(self, block: int) -> int:
        handle, address, length = self._words(block, 3)
        file, data = self._file(handle), self._bytes(address, length)
        if file is None:
            self._output(data)
            return 0
        return length - (file.write(data) or 0)

    def _read(self, block: int) -> int:
        handle, address, length = self._words(block, 3)
        file = self._file(handle)
        self._require(address, length)
        data = self._typed(length) if file is None else file.read(length)
        self._memory.write(address, data)
        return length - len(data)

    def _read_character(self, _: int) -> int:
        return (self._typed(1) or b"\0")[0]

    def _is_error(self, block: int) -> int:
        (status,) = self._words(block, 1)
        return status >> 31

    def _is_tty(self, block: int) -> int:
        return int(self._file(*self._words(block, 1)) is None)

    def _seek(self, block: int) -> int:
        handle, position = self._words(block, 2)
        file = self._file(handle)
        if file is None:
            return self._fail(errno.ESPIPE)
        file.seek(position)
        return 0

    def _length(self, block: int) -> int:
        file = self._file(*self._words(block, 1))
        if file is None:
            return 0
        position = file.tell()
        length = file.seek(0, os.SEEK_END)
        file.seek(position)
        return length

    def _temporary_name(self, block: int) -> int:
        address, number, length = self._words(block, 3)
        name = b"tmp%02x\0" % (number & 0xFF)
        if length < len(name):
            return self._fail(errno.EINVAL)
        self._put(address, name)
        return 0

    def _remove(self, block: int) -> int:
        os.remove(self._path(self._bytes(*self._words(block, 2))))
        return 0

    def _rename(self, block: int) -> int:
        old, old_length, new, new_length = self._words(block, 4)
        os.rename(self._path(self._bytes(old, old_length)), self._path(self._bytes(new, new_length)))
        return 0

    def _centiseconds(self, _: int) -> int:
        return int((time.monotonic() - self._started) * 100)

    def _time(self, _: int) -> int:
        return int(time.time())

    def _system(self, block: int) -> int:
        command = self._bytes(*self._words(block, 2)).decode("utf-8", "replace")
        self._report(f"semihosting SYS_SYSTEM refused: host commands are not run: {command!r}")
        return self._fail(errno.EPERM)

    def _last_error(self, _: int) -> int:
        return self._errno

    def _command_line(self, block: int) -> int:
        address, size = self._words(block, 2)
        text = self._settings.command_line.encode() + b"\0"
        if len(text) > size:
            return self._fail(errno.E2BIG)
        self._put(address, text)
        self._put(block + 4, struct.pack("<I", len(text) - 1))
        return 0

    def _heap_info(self, block: int) -> int:
        (address,) = self._words(block, 1)
        self._put(address, struct.pack("<4I", *self._settings.heap))
        return 0

    def _exit(self, reason: int) -> int:
        raise self._ending(reason, 0 if reason == APPLICATION_EXIT else 1)

    def _exit_extended(self, block: int) -> int:
        reason, status = self._words(block, 2)
        raise self._ending(reason, status if reason == APPLICATION_EXIT else 1)

    @staticmethod
    def _ending(reason: int, status: int) -> Exit:
        text = "" if reason == APPLICATION_EXIT else _REASONS.get(reason, f"stopped for reason {reason:#x}")
        return Exit(status & 0xFF, text)

    def _elapsed(self, address: int) -> int:
        self._put(address, struct.pack("<Q", self._clock.cycles))
        return 0

    def _tick_frequency(self, _: int) -> int:
        return self._board.clock_hz

    def _file(self, handle: int) -> File | None:
        if handle not in self._files:
            raise OSError(errno.EBADF, "no such handle")
        return self._files[handle]

    def _path(self, name: bytes) -> str:
        """The host's path for a guest's file name.

        Raises:
            OSError: it is outside the folder; reported in a line.
        """
        path = os.path.realpath(os.path.join(self._root, os.fsdecode(name)))
        if os.path.commonpath([path, self._root]) != self._root:
            self._report(
                f"semihosting: {os.fsdecode(name)!r} refused: it is outside semihosting-cwd {self._root}"
            )
            raise OSError(errno.EACCES, "outside the folder")
        return path

    def _typed(self, length: int) -> bytes:
        return self._settings.keyboard.readline(length) if self._settings.keyboard else b""

    def _words(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self._bytes(address, 4 * count))

    def _bytes(self, address: int, size: int) -> bytes:
        self._require(address, size)
        return self._memory.read(address, size)

    def _put(self, address: int, data: bytes) -> None:
        self._require(address, len(data))
        self._memory.write(address, data)

    def _require(self, address: int, size: int) -> None:
        if not self._board.has_memory(address, size):
            self._report(f"semihosting: {size} bytes at {address:#010x} are in no memory")
            raise OSError(errno.EFAULT, "no memory there")

    def _string(self, address: int) -> bytes:
        text = b""
        while True:
            piece = next(
                (n for n in range(_STRING_PIECE, 0, -1) if self._board.has_memory(address + len(text), n)), 1
            )
            text += self._bytes(address + len(text), piece)
            if b"\0" in text:
                return text[: text.index(b"\0")]

    def _fail(self, code: int) -> int:
        self._errno = code
        return _FAILED


_OPERATIONS: dict[int, Callable[[Semihosting, int], int]] = {
    Operation.SYS_OPEN: Semihosting._open,
    Operation.SYS_CLOSE: Semihosting._close,
    Operation.SYS_WRITEC: Semihosting._write_character,
    Operation.SYS_WRITE0: Semihosting._write_string,
    Operation.SYS_WRITE: Semihosting._write,
    Operation.SYS_READ: Semihosting._read,
    Operation.SYS_READC: Semihosting._read_character,
    Operation.SYS_ISERROR: Semihosting._is_error,
    Operation.SYS_ISTTY: Semihosting._is_tty,
    Operation.SYS_SEEK: Semihosting._seek,
    Operation.SYS_FLEN: Semihosting._length,
    Operation.SYS_TMPNAM: Semihosting._temporary_name,
    Operation.SYS_REMOVE: Semihosting._remove,
    Operation.SYS_RENAME: Semihosting._rename,
    Operation.SYS_CLOCK: Semihosting._centiseconds,
    Operation.SYS_TIME: Semihosting._time,
    Operation.SYS_SYSTEM: Semihosting._system,
    Operation.SYS_ERRNO: Semihosting._last_error,
    Operation.SYS_GET_CMDLINE: Semihosting._command_line,
    Operation.SYS_HEAPINFO: Semihosting._heap_info,
    Operation.SYS_EXIT: Semihosting._exit,
    Operation.SYS_EXIT_EXTENDED: Semihosting._exit_extended,
    Operation.SYS_ELAPSED: Semihosting._elapsed,
    Operation.SYS_TICKFREQ: Semihosting._tick_frequency,
}

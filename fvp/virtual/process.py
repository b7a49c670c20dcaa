# SPDX-License-Identifier: Apache-2.0
"""One QEMU process: stopped at its first instruction, read and written through /proc, never left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from fvp.platform import Deadline
from report.errors import EnvironmentError_, RunFailed

GUEST_BASE = 0x4_0000_0000
"""Host address of guest address 0 (QEMU's ``-B``): above everything else QEMU maps, below 2**47."""

_PAUSE = 0.001
"""Seconds between two looks at a process; QEMU needs about 50 ms to open its port."""

_LONGEST_PAUSE = 0.05

_LONGEST_SOCKET_PARENT = 80

_LAST_WORDS_WAIT = 0.5
"""Seconds a process that has closed its debugger port gets to end by itself."""

_DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""Prefix of a command that is to be killed when the thread that started it goes, however it goes.

A program of util-linux and no ``preexec_fn``: that would make Python fork, which copies the page tables of
everything that torch has loaded (tens of milliseconds).
"""


def start(command: Sequence[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, its standard output and error going to `output`.

    Raises:
        EnvironmentError_: `_DIE_WITH_PARENT` is not installed.
        OSError: it cannot be started.
    """
    if shutil.which(_DIE_WITH_PARENT[0]) is None:
        raise EnvironmentError_(f"no {_DIE_WITH_PARENT[0]}", hint="install the package util-linux")
    if shutil.which(command[0]) is None:
        missing = not os.path.exists(command[0])
        number = errno.ENOENT if missing else errno.EACCES
        raise OSError(number, os.strerror(number), command[0])
    return subprocess.Popen(
        [*_DIE_WITH_PARENT, *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill what `start` started, and whatever that has started itself; reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_briefly(command: Sequence[str], seconds: float, *, whole: bool = False) -> tuple[int | None, str]:
    """Run a program for its output: exit status (None when it did not end in time) and text.

    Only the first 4 KiB of text are read unless the `whole` is asked for.

    Raises:
        OSError: it cannot be started.
    """
    with tempfile.TemporaryFile() as output:
        process = start(command, output)
        try:
            status = _wait(process.pid, seconds)
        finally:
            end(process)
        size = os.fstat(output.fileno()).st_size if whole else 4096
        return status, os.pread(output.fileno(), size, 0).decode("utf-8", "replace")


def _wait(pid: int, seconds: float) -> int | None:
    """`_status` of a child that gets some seconds to end."""
    limit, pause = time.monotonic() + seconds, _PAUSE
    while (status := _status(pid)) is None and time.monotonic() < limit:
        time.sleep(pause)
        pause = min(1.1 * pause, _LONGEST_PAUSE)
    return status


def _status(pid: int) -> int | None:
    """Exit status of a child (negative: the signal that ended it), None while it runs.

    The child is left to be reaped by `end`: until then its process group cannot become another's.
    """
    info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


class GuestGone(Exception):
    """The guest's memory cannot be reached: the process has ended, or nothing is at the address."""


class GuestMemory:
    """The guest's memory by guest address, through ``/proc/PID/mem``.

    The caller keeps to the board's memories: what QEMU has only reserved reads as zeros.

    Raises:
        GuestGone: by every access.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._file = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise EnvironmentError_(
                "cannot read the memory of the simulator",
                where=f"/proc/{pid}/mem",
                why=str(error.strerror),
                hint="allow ptrace of child processes (kernel.yama.ptrace_scope 0 or 1)",
            ) from error

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at `address`."""
        return self.read_array(address, size).tobytes()

    def read_array(self, address: int, size: int) -> np.ndarray:
        """uint8[size] at `address`, a copy."""
        data = np.empty(size, np.uint8)
        done = 0
        while done < size:
            done += self._moved(os.preadv, [data.data[done:]], address + done)
        return data

    def write(self, address: int, data: bytes | np.ndarray) -> None:
        """Store `data` (any C-contiguous buffer) at `address`."""
        view = data.data.cast("B") if isinstance(data, np.ndarray) else memoryview(data)
        done = 0
        while done < len(view):
            done += self._moved(os.pwritev, [view[done:]], address + done)

    def _moved(self, call: Callable[..., int], buffers: list[memoryview], address: int) -> int:
        """Bytes that one system call has moved."""
        try:
            count = call(self._file, buffers, GUEST_BASE + address)
        except OSError as error:
            raise GuestGone(f"guest memory at {address:#010x}: {error.strerror}") from error
        if count <= 0:
            raise GuestGone(f"guest memory at {address:#010x} is gone")
        return count

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._file)


class QemuProcess:
    """A running qemu-arm with its debugger connection; a context manager that always ends the process.

    Args:
        qemu: the emulator.
        cpu: QEMU's name of the CPU model.
        image: ELF whose segments are the guest's memory.
        deadline: limit for the start.

    Raises:
        RunFailed: the program cannot be started or ends before it opens its debugger port.
        PlatformTimeout: it does not open the port in time.
    """

    def __init__(self, qemu: Path, cpu: str, image: Path, deadline: Deadline) -> None:
        self._cleanup = contextlib.ExitStack()
        self._qemu = qemu
        try:
            self._errors = self._cleanup.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
            with tempfile.TemporaryDirectory(prefix="armdeploy-", dir=_socket_parent()) as folder:
                port = f"{folder}/gdb"
                self._process = self._start(
                    [str(qemu), "-cpu", cpu, "-B", hex(GUEST_BASE), "-g", port, str(image)]
                )
                self.connection = self._connect(port, deadline)
            self.memory = GuestMemory(self._process.pid)
            self._cleanup.callback(self.memory.close)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> QemuProcess:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the emulator."""
        return self._process.pid

    def close(self) -> None:
        """Kill and reap the process, close what belongs to it; a second call does nothing."""
        self._cleanup.close()

    def last_words(self) -> str:
        """How the process ended (waits briefly for that) and the end of its error output, in one line."""
        status = _wait(self._process.pid, _LAST_WORDS_WAIT)
        text = os.pread(self._errors.fileno(), 4096, 0).decode("utf-8", "replace").strip()
        return f"{self._qemu} {ending(status)}" + (f", saying: {text[-300:]}" if text else " without a word")

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        try:
            process = start(command, self._errors)
        except OSError as error:
            raise RunFailed(f"cannot start {command[0]}", where="virtual", why=str(error.strerror)) from error
        self._cleanup.callback(end, process)
        return process

    def _connect(self, port: str, deadline: Deadline) -> socket.socket:
        connection = self._cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        while True:
            try:
                connection.connect(port)
            except OSError:
                if _status(self._process.pid) is not None:
                    raise RunFailed(
                        "the simulator did not start", where="virtual", why=self.last_words()
                    ) from None
                deadline.remaining("the simulator did not open its debugger port")
                time.sleep(_PAUSE)
            else:
                return connection


def _socket_parent() -> str:
    """A folder for temporary files whose path is short enough for a socket in it (sun_path has 108 bytes)."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) < _LONGEST_SOCKET_PARENT else "/tmp"


def ending(status: int | None) -> str:
    """How a process ended, given its `_status`."""
    if status is None:
        return "is still running"
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with exit status {status}"

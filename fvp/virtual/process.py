# SPDX-License-Identifier: Apache-2.0
"""One QEMU process: started stopped at its first instruction, read and written through /proc, never left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from fvp.platform import Deadline
from report.errors import EnvironmentError_, RunFailed

GUEST_BASE = 0x4_0000_0000
"""Host address of guest address 0 (QEMU's ``-B``): above everything else QEMU maps, below 2**47."""

_PR_SET_PDEATHSIG = 1
_CONNECT_PAUSE = 0.001
"""Seconds between two attempts to connect; QEMU needs about 50 ms to open its port."""

_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    """In the child: be killed when the thread that started it goes, however it goes."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class GuestMemory:
    """The guest's memory by guest address, through ``/proc/PID/mem``.

    Raises:
        OSError: (by every access) an address that the guest has not mapped.
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
        data = os.pread(self._file, size, GUEST_BASE + address)
        if len(data) != size:
            raise OSError(f"short read of {len(data)} of {size} bytes at {address:#010x}")
        return data

    def read_array(self, address: int, size: int) -> np.ndarray:
        """uint8[size] at `address`, a copy."""
        data = np.empty(size, np.uint8)
        done = 0
        while done < size:
            count = os.preadv(self._file, [memoryview(data)[done:]], GUEST_BASE + address + done)
            if count <= 0:
                raise OSError(f"short read of {done} of {size} bytes at {address:#010x}")
            done += count
        return data

    def write(self, address: int, data: bytes | np.ndarray) -> None:
        """Store `data` (any C-contiguous buffer) at `address`."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += os.pwrite(self._file, view[done:], GUEST_BASE + address + done)

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
            self._errors = self._cleanup.enter_context(tempfile.TemporaryFile())
            with tempfile.TemporaryDirectory(prefix="armdeploy-") as folder:
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
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        status = self._process.poll()
        text = os.pread(self._errors.fileno(), 4096, 0).decode("utf-8", "replace").strip()
        return f"{self._qemu} {_ending(status)}" + (f", saying: {text[-300:]}" if text else " without a word")

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            raise RunFailed(f"cannot start {command[0]}", where="virtual", why=str(error.strerror)) from error
        self._cleanup.callback(process.wait)
        self._cleanup.callback(process.kill)
        return process

    def _connect(self, port: str, deadline: Deadline) -> socket.socket:
        connection = self._cleanup.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        while True:
            try:
                connection.connect(port)
            except OSError:
                if self._process.poll() is not None:
                    raise RunFailed(
                        "the simulator did not start", where="virtual", why=self.last_words()
                    ) from None
                deadline.remaining("the simulator did not open its debugger port")
                time.sleep(_CONNECT_PAUSE)
            else:
                return connection


def _ending(status: int | None) -> str:
    if status is None:
        return "is still running"
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with exit status {status}"

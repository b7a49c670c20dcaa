# SPDX-License-Identifier: Apache-2.0
"""Reads an emulator's log while it is written, through a named pipe: the log itself is never stored."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

_F_SETPIPE_SZ = 1031
_CAPACITY = 1 << 20
_PAUSE = 0.004
"""Seconds between two reads: a reader that sleeps in read() would be woken for every line."""


class Follower:
    """A context manager: a pipe at `path`, whose content goes to `take` piece by piece, in a thread.

    Args:
        path: where to make the pipe.
        take: called with each piece; what it raises is raised again on leaving.
    """

    def __init__(self, path: Path, take: Callable[[bytes], None]) -> None:
        self._path, self._take = path, take
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Follower:
        os.mkfifo(self._path)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the end of the log; to be left when the writer has ended."""
        with contextlib.suppress(OSError):  # no reader waits any more: there was a writer
            os.close(os.open(self._path, os.O_WRONLY | os.O_NONBLOCK))
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _read(self) -> None:
        with self._path.open("rb", buffering=0) as pipe:
            with contextlib.suppress(OSError):  # more than the system allows a user
                fcntl.fcntl(pipe, _F_SETPIPE_SZ, _CAPACITY)
            try:
                while data := pipe.read(_CAPACITY):
                    self._take(data)
                    time.sleep(_PAUSE)
            except Exception as error:  # the writer meets a closed pipe and ends
                self._error = error

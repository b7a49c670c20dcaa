# SPDX-License-Identifier: Apache-2.0
"""Caches of decoded weights: in memory by size, and on disk between runs.

The disk cache is a folder of files named by what they were decoded from. The environment variable
ARMDEPLOY_CACHE moves it; the value `off` disables it. It holds at most DISK_LIMIT bytes; the files unused for
longest are removed first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Hashable
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

DISK_LIMIT = 256 << 20
"""Bytes that the files of the disk cache may take together."""
ENVIRONMENT = "ARMDEPLOY_CACHE"

# Part of the folder's name: change it when the meaning of an entry changes.
_FOLDER = "weights-1"
_DIGEST = 16
_KEPT_SHARE = 0.75

Value = TypeVar("Value")


class MemoryCache(Generic[Value]):
    """Keeps the values used last, up to `limit` bytes; safe to use from several threads."""

    def __init__(self, limit: int):
        self._limit = limit
        self._size = 0
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Value | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Add a value of `size` bytes; one larger than the whole cache is not kept."""
        with self._lock:
            if key in self._entries or size > self._limit:
                return
            self._entries[key] = (value, size)
            self._size += size
            while self._size > self._limit:
                _, (_, freed) = self._entries.popitem(last=False)
                self._size -= freed

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._size = 0


def load(key: str, shape: tuple[int, ...]) -> np.ndarray | None:
    """The int16 tensor stored under `key`, or None when there is none that is intact."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / key
    try:
        content = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    digest, data = content[:_DIGEST], content[_DIGEST:]
    if len(data) != 2 * int(np.prod(shape)) or _digest(data) != digest:
        return None
    return np.frombuffer(data, "<i2").astype(np.int16, copy=False).reshape(shape)


def store(key: str, tensor: np.ndarray) -> None:
    """Store an int16 tensor; a cache that cannot be written is left alone."""
    folder = _folder()
    if folder is None:
        return
    data = tensor.astype("<i2", copy=False).tobytes()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / key, _digest(data) + data)
        _prune(folder)


def _folder() -> Path | None:
    place = os.environ.get(ENVIRONMENT)
    if place == "off":
        return None
    try:
        root = Path(place) if place else Path.home() / ".cache" / "armdeploy"
    except RuntimeError:  # there is no home
        return None
    return root / _FOLDER


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _write(path: Path, content: bytes) -> None:
    """Readers and other writers see the whole file or none."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _prune(folder: Path) -> None:
    """Once the limit is passed, remove what was not used for longest until there is room again."""
    files = sorted(
        (entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in os.scandir(folder)
    )
    total = sum(size for _, size, _ in files)
    if total <= DISK_LIMIT:
        return
    for _, size, path in files:
        if total <= _KEPT_SHARE * DISK_LIMIT:
            break
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        total -= size

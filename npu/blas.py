# SPDX-License-Identifier: Apache-2.0
"""One BLAS thread while the machine runs.

Its matrix products are small; spread over threads they gain little on an idle computer and lose a factor of
ten on a busy one, where the threads spin waiting for each other. Only OpenBLAS, which NumPy's wheels bring
along, is known; with any other library nothing changes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

_NAMES = [f"{prefix}openblas_{{}}_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "")]


@cache
def _thread_functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """OpenBLAS's functions that get and set the number of threads, None if NumPy has another BLAS."""
    for path in Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"):
        library = ctypes.CDLL(str(path))
        for name in _NAMES:
            if hasattr(library, name.format("set")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products inside use one thread; the number before is restored."""
    functions = _thread_functions()
    if functions is None:
        yield
        return
    get_threads, set_threads = functions
    before = get_threads()
    set_threads(1)
    try:
        yield
    finally:
        set_threads(before)

# SPDX-License-Identifier: Apache-2.0
"""Keeps native libraries' chatter away from our output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


class Captured:
    """What was written to file descriptors 1 and 2 inside `quiet`; `text` is set at its end."""

    text = ""


@contextmanager
def quiet() -> Iterator[Captured]:
    """Redirect file descriptors 1 and 2, and Python's standard output, for libraries that print.

    Process wide: a thread that prints meanwhile is captured as well.
    """
    captured = Captured()
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
        try:
            with open(1, "w", closefd=False) as stdout, redirect_stdout(stdout):
                yield captured
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for target, original in zip((1, 2), saved, strict=True):
                os.dup2(original, target)
                os.close(original)
            sink.seek(0)
            captured.text = sink.read().decode(errors="replace")

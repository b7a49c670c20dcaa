# SPDX-License-Identifier: Apache-2.0
"""Files that a user asks for by name."""

from __future__ import annotations

import sys
from pathlib import Path

from report.errors import UsageError


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, its folder too, and say so on stderr.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("cannot write", where=str(path), why=str(error.strerror)) from error
    print(f"wrote {path}", file=sys.stderr)

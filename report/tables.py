# SPDX-License-Identifier: Apache-2.0
"""Plain-text tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of equal keys as aligned columns under their key names; numbers to the right, None as n/a."""
    if not rows:
        return ""
    keys = list(rows[0])
    cells = [keys, *([_cell(row[key]) for key in keys] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(keys))]
    right = [all(isinstance(row[key], int | float) for row in rows) for key in keys]
    return "\n".join(_line(line, widths, right) for line in cells)


def plain(text: str) -> str:
    """Without what moves a terminal's cursor or is no character: each such thing a space."""
    return "".join(character if character.isprintable() else " " for character in text)


def _line(line: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    columns = zip(line, widths, right, strict=True)
    return "  ".join(text.rjust(width) if r else text.ljust(width) for text, width, r in columns).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return "n/a"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return plain(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))

# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of an image come from: GNU ld's map file summed by component of the runtime."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_CONTRIBUTION = re.compile(r"^ (\.\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S.*)$")
_LONG_NAME = re.compile(r"^ (\.\S+)$")
_COMPONENT = re.compile(r"/runtime/(\w+)/")
_KINDS = (
    ("code", (".text", ".vectors")),
    ("rodata", (".rodata",)),
    ("data", (".data",)),
    ("bss", (".bss", "COMMON")),
)


@dataclass(frozen=True)
class Contribution:
    """Bytes of one input section: what kind, from which object."""

    kind: str
    path: str
    size: int


def contributions(lines: Iterable[str]) -> Iterator[Contribution]:
    """Input sections of a map file that are part of the image."""
    pending = ""
    for line in lines:
        if long_name := _LONG_NAME.match(line):
            pending = long_name[1]
            continue
        match = _CONTRIBUTION.match(f" {pending}{line}" if pending else line)
        pending = ""
        if match and int(match[2], 16) + int(match[3], 16) and (kind := _kind(match[1])):
            yield Contribution(kind, match[4], int(match[3], 16))


def _kind(section: str) -> str | None:
    return next((kind for kind, prefixes in _KINDS if section.startswith(prefixes)), None)


def component(path: str) -> str:
    """Component of an object: a folder of runtime/, the compiler's library, the C library or "generated"."""
    if match := _COMPONENT.search(path):
        return match[1]
    if "libgcc" in path:
        return "libgcc"
    return "C library" if re.search(r"\blib\w+\.a\(", path) else "generated"


def by_component(
    lines: Iterable[str], beginning: str = "Linker script and memory map"
) -> dict[str, dict[str, int]]:
    """Bytes by component and kind, from where the map begins; in front of it is what was discarded."""
    table: dict[str, dict[str, int]] = {}
    started = False
    kept = []
    for line in lines:
        started = started or line.startswith(beginning)
        if started:
            kept.append(line.rstrip("\n"))
    for item in contributions(kept):
        row = table.setdefault(component(item.path), dict.fromkeys((kind for kind, _ in _KINDS), 0))
        row[item.kind] += item.size
    return table


def render(table: dict[str, dict[str, int]]) -> list[str]:
    """Lines of a table, biggest component first."""
    kinds = [kind for kind, _ in _KINDS]
    lines = [f"{'component':<12}" + "".join(f"{kind:>9}" for kind in kinds)]
    for name, row in sorted(table.items(), key=lambda item: -sum(item[1].values())):
        lines.append(f"{name:<12}" + "".join(f"{row[kind]:>9}" for kind in kinds))
    return lines

# SPDX-License-Identifier: Apache-2.0
"""What an FVP's output tells beside the application's own lines: why it stopped, its statistics."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REASON = re.compile(r"^Info: Simulation is stopping\. Reason: (.+?)\.?$", re.MULTILINE)
_STATISTICS = re.compile(r"^--- .+ statistics: -+$", re.MULTILINE)
_SECONDS = {
    "simulated_seconds": re.compile(r"^Simulated time\s*:\s*([\d.]+)s$", re.MULTILINE),
    "wall_seconds": re.compile(r"^Wall time\s*:\s*([\d.]+)s$", re.MULTILINE),
}
_INSTRUCTIONS = re.compile(r"MIPS \(\s*(\d+) Inst\)")


@dataclass(frozen=True)
class Simulation:
    """One simulation by its own account.

    Attributes:
        limit: the limit that ended it ("CPU time has been exceeded" …), "" for none.
        simulated_seconds, wall_seconds, instructions: of ``--stat``; None when it did not print them.
    """

    limit: str
    simulated_seconds: float | None
    wall_seconds: float | None
    instructions: int | None


def parse(text: str) -> Simulation:
    """Read an FVP's output; lines of the application are passed over."""
    reason = _REASON.search(text)
    statistics = _STATISTICS.search(text)
    tail = text[statistics.end() :] if statistics else ""
    found = {name: pattern.search(tail) for name, pattern in _SECONDS.items()}
    seconds = {name: float(match[1]) if match else None for name, match in found.items()}
    counted = _INSTRUCTIONS.findall(tail)
    return Simulation(
        limit=reason[1] if reason else "",
        instructions=sum(map(int, counted)) if counted else None,
        **seconds,
    )

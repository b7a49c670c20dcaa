# SPDX-License-Identifier: Apache-2.0
"""Which cores are a CPU's fastest, and how a program is kept on them.

Pinning chooses cores, it does not fix their frequency: writing a governor's limits needs root. What a study
calls "unconstrained" power is therefore not reached by pinning alone, and the text says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from report.errors import EnvironmentError_

QUERY = (
    "cd /sys/devices/system/cpu && for f in cpu[0-9]*/cpufreq; do "
    'echo "$f $(cat $f/cpuinfo_max_freq) $(cat $f/scaling_governor)"; done'
)
"""A shell command: for each core its folder, the highest frequency in kHz and the governor."""

_LINE = re.compile(r"^cpu(\d+)/cpufreq (\d+) ?(\S*)$", re.MULTILINE)


@dataclass(frozen=True)
class Core:
    """One core: number, highest frequency in kHz, governor ("" where it cannot be read)."""

    number: int
    kilohertz: int
    governor: str


@dataclass(frozen=True)
class Pinning:
    """The cores that a program is kept on."""

    cores: tuple[Core, ...]

    @property
    def prefix(self) -> tuple[str, ...]:
        """What stands before the command: taskset, and a mask in hexadecimal without a prefix."""
        return ("taskset", f"{sum(1 << core.number for core in self.cores):x}")

    @property
    def text(self) -> str:
        """For the run record."""
        names = ", ".join(f"cpu{core.number} (at most {core.kilohertz / 1e6:g} GHz)" for core in self.cores)
        governors = ", ".join(sorted({core.governor or "unknown" for core in self.cores}))
        left = f"frequency left to governor {governors}, fixing it needs root"
        return f"pinned to {names}, mask {self.prefix[1]}; {left}"


def power_text(pinning: Pinning | None) -> str:
    """What a run record says of cores and frequency."""
    return pinning.text if pinning else "default: cores and frequency left to the system"


def fastest(answer: str, count: int, where: str) -> Pinning:
    """The `count` fastest cores of a machine that answered `QUERY`.

    Raises:
        EnvironmentError_: it does not tell its cores' frequencies, or has fewer cores.
    """
    cores = [Core(int(number), int(khz), governor) for number, khz, governor in _LINE.findall(answer)]
    if len(cores) < count:
        why = f"{count} wanted, /sys/devices/system/cpu tells the frequency of {len(cores)}"
        raise EnvironmentError_(
            "cannot pin to the fastest cores", where=where, why=why, hint="leave --pinned out"
        )
    ranked = sorted(cores, key=lambda core: (-core.kilohertz, -core.number))
    return Pinning(tuple(ranked[:count]))

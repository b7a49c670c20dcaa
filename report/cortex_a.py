# SPDX-License-Identifier: Apache-2.0
"""The Cortex-A targets: how far a CPU's instruction set goes. Compilers and platforms read the same table.

The program is the same for all of them: XNNPACK chooses its kernels where it runs, by what the CPU has. A
target says what the libraries may use there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from report.errors import UsageError

FAMILY = "cortex-a"
FLOAT_PROGRAM = "float.pt2"
"""Name of the program before quantisation, kept beside the one before lowering."""


@dataclass(frozen=True)
class CpuTarget:
    """One target; `isa` is the runner's ``--isa``, `title` what tables call it."""

    name: str
    isa: str
    title: str


TARGETS: Mapping[str, CpuTarget] = MappingProxyType(
    {
        target.name: target
        for target in (
            CpuTarget("cortex-a-sme2", "sme2", "SME2"),
            CpuTarget("cortex-a-sme", "sme", "SME"),
            CpuTarget("cortex-a-neon", "neon", "NEON"),
        )
    }
)

BASELINE = TARGETS["cortex-a-neon"]
"""What the others are compared with."""

_ALIASES: Mapping[str, str] = MappingProxyType({FAMILY: "cortex-a-sme2"})


def is_cortex_a(name: str) -> bool:
    """Whether `name` is meant as a target of this family, spelt correctly or not."""
    return name.strip().lower().startswith(FAMILY)


def find_cpu_target(name: str) -> CpuTarget:
    """The target called `name`.

    Raises:
        UsageError: no such target; the message offers the nearest.
    """
    key = name.strip().lower()
    key = _ALIASES.get(key, key)
    if key in TARGETS:
        return TARGETS[key]
    near = get_close_matches(key, TARGETS, n=1)
    hint = (f"did you mean {near[0]}? " if near else "") + f"targets: {FAMILY}, {', '.join(TARGETS)}"
    raise UsageError(f"unknown target {name!r}", where="--target", hint=hint)


def find_cpu_targets(names: Iterable[str]) -> list[CpuTarget]:
    """The targets of a repeated, comma separated option; [] when none of them is of this family.

    Raises:
        UsageError: an unknown target, or targets of this family beside others.
    """
    parts = [part.strip() for name in names for part in name.split(",") if part.strip()]
    if not any(map(is_cortex_a, parts)):
        return []
    others = [part for part in parts if not is_cortex_a(part)]
    if others:
        why = "they are compiled by different backends"
        raise UsageError(
            f"{others[0]} beside {FAMILY}", where="--target", why=why, hint="compile one, then the other"
        )
    return list({target.name: target for target in map(find_cpu_target, parts)}.values())

# SPDX-License-Identifier: Apache-2.0
"""What one inference on a CPU cost, operator by operator, and the sums over categories.

A cost is a number of executed instructions (nature ``emulated-count``) or nanoseconds (``measured``); the two
are never mixed in one profile. Operators and framework add up to the inference, the stages to the whole
process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from report.categories import CATEGORIES, OTHER, category_of, parse_name
from report.cortex_a import TARGETS, CpuTarget

UNITS: Mapping[str, str] = {"emulated-count": "instructions", "measured": "ns"}
DEFAULT_POWER, PINNED = "default", "pinned"


@dataclass(frozen=True)
class OperatorCost:
    """One executed operator.

    Attributes:
        name: as the backend calls it, its number included.
        delegated: whether a delegate executed it.
        cost: in the profile's unit.
        start: from the start of the inference, in the same unit.
        classes: instructions by class; empty where they are not known.
        kernels: KleidiAI's functions that it executed with their instructions, those that multiply first.
    """

    name: str
    delegated: bool
    cost: int
    classes: Mapping[str, int] = field(default_factory=dict)
    kernels: tuple[tuple[str, int], ...] = ()
    start: int = 0

    @property
    def category(self) -> str:
        return category_of(self.name, delegated=self.delegated)

    @property
    def path(self) -> str:
        return parse_name(self.name).path if self.delegated else "portable"


@dataclass(frozen=True)
class CpuProfile:
    """One process of one mode.

    Attributes:
        operators: of the last inference, in order.
        inference: cost of that inference.
        stages: of the whole process, in order: set-up, first inference …; they add up to `whole`.
        sme_kernels: KleidiAI's functions for SME that ran anywhere in the process.
        sme_instructions: of class SME in the whole process; None where instructions are not counted.
        threads: that the process computed with.
        power: "default", or "pinned" to the fastest cores.
        latencies: nanoseconds of inferences in a process of their own, without a profiler; () on an emulator.
    """

    target: CpuTarget
    nature: str
    operators: tuple[OperatorCost, ...]
    inference: int
    stages: tuple[tuple[str, int], ...]
    sme_kernels: tuple[str, ...] = ()
    sme_instructions: int | None = None
    threads: int = 1
    power: str = DEFAULT_POWER
    latencies: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """What tables call the mode."""
        return self.target.title if self.threads == 1 else f"{self.target.title} x{self.threads}"

    @property
    def key(self) -> str:
        """What records call the mode."""
        return self.target.isa if self.threads == 1 else f"{self.target.isa}_{self.threads}threads"

    @property
    def latency(self) -> int | None:
        """Median of `latencies`, None where there are none."""
        return int(median(self.latencies)) if self.latencies else None

    @property
    def unit(self) -> str:
        return UNITS[self.nature]

    @property
    def framework(self) -> int:
        """Of the inference, what is in no operator."""
        return self.inference - sum(operator.cost for operator in self.operators)

    @property
    def whole(self) -> int:
        return sum(cost for _, cost in self.stages)

    def by_category(self) -> dict[str, int]:
        """Cost of every category; `OTHER` holds the framework as well, so that they add up to `inference`."""
        sums = dict.fromkeys(CATEGORIES, 0)
        for operator in self.operators:
            sums[operator.category] += operator.cost
        sums[OTHER] += self.framework
        return sums

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "target": self.target.name,
            "nature": self.nature,
            "threads": self.threads,
            "power": self.power,
            "latencies": list(self.latencies),
            "unit": self.unit,
            "inference": self.inference,
            "framework": self.framework,
            "categories": self.by_category(),
            "stages": dict(self.stages),
            "sme_instructions": self.sme_instructions,
            "sme_kernels": list(self.sme_kernels),
            "operators": [
                {**asdict(operator), "category": operator.category, "path": operator.path}
                for operator in self.operators
            ],
        }


def from_json(data: Mapping[str, Any]) -> CpuProfile:
    """The profile that `CpuProfile.to_json` has written.

    Raises:
        KeyError, TypeError: it is another document.
    """
    return CpuProfile(
        target=TARGETS[data["target"]],
        nature=data["nature"],
        operators=tuple(map(_operator, data["operators"])),
        inference=data["inference"],
        stages=tuple(data["stages"].items()),
        sme_kernels=tuple(data["sme_kernels"]),
        sme_instructions=data["sme_instructions"],
        threads=data["threads"],
        power=data["power"],
        latencies=tuple(data["latencies"]),
    )


def _operator(data: Mapping[str, Any]) -> OperatorCost:
    kernels = tuple((name, count) for name, count in data["kernels"])
    return OperatorCost(
        data["name"], data["delegated"], data["cost"], data["classes"], kernels, data["start"]
    )


def ratio(baseline: int, other: int) -> float | None:
    """How many times less `other` is; None where it is nothing."""
    return baseline / other if other else None


def category_rows(profiles: Sequence[CpuProfile]) -> list[dict[str, Any]]:
    """A row a category and one for the inference: cost and share by mode, the first against the last.

    Args:
        profiles: one mode or two, of one program and one nature; the baseline last.
    """
    sums = [profile.by_category() for profile in profiles]
    totals = [profile.inference for profile in profiles]
    rows = [_row(name, [s[name] for s in sums], totals, profiles) for name in CATEGORIES]
    return [*rows, _row("whole inference", totals, totals, profiles)]


def _row(
    name: str, costs: Sequence[int], totals: Sequence[int], profiles: Sequence[CpuProfile]
) -> dict[str, Any]:
    row: dict[str, Any] = {"category": name}
    for profile, cost, total in zip(profiles, costs, totals, strict=True):
        row[profile.title] = cost
        row[f"share {profile.title}"] = f"{100 * cost / total:.1f} %" if total else None
    if len(profiles) == 2:
        found = ratio(costs[1], costs[0])
        row[f"{profiles[1].title} / {profiles[0].title}"] = None if found is None else f"{found:.2f}"
    return row


def latency_row(profiles: Sequence[CpuProfile]) -> dict[str, Any]:
    """Threads, power mode and milliseconds by mode, with the last mode's against the first's.

    Args:
        profiles: modes of one program with one number of threads; the baseline last. A latency that nobody
            has measured is None.
    """
    known = [profile.latency for profile in profiles]
    row: dict[str, Any] = {"threads": profiles[0].threads, "power": profiles[0].power}
    for profile, latency in zip(profiles, known, strict=True):
        row[f"{profile.target.title} ms"] = None if latency is None else f"{latency / 1e6:.3f}"
    if len(profiles) == 2:
        found = ratio(known[1], known[0]) if known[0] is not None and known[1] is not None else None
        row["speed-up"] = None if found is None else f"{found:.2f}"
    return row

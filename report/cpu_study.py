# SPDX-License-Identifier: Apache-2.0
"""Run records of Cortex-A programs side by side: latency by type, cores and power; cost by category.

The two tables are those of the published study of SqueezeSAM (`report.published`). A record is one program
on one machine with an instruction set and with NEON alone; what nobody has measured is n/a. Time and
instruction counts never share a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import perfetto, published, record
from report.categories import CATEGORIES
from report.cortex_a import BASELINE
from report.cpu_profile import DEFAULT_POWER, PINNED, CpuProfile, category_rows, from_json, ratio
from report.errors import UsageError
from report.runs import NPU
from report.tables import table

_CORES, _POWERS = (1, 4), (DEFAULT_POWER, PINNED)
"""What the study has, whether or not it was measured."""

_TICKS_PER_MICROSECOND = 1000
"""Nanoseconds of a measured profile; of a counted one, instructions that are drawn as a microsecond."""

_LANES = ("inference", *CATEGORIES)


@dataclass(frozen=True)
class Group:
    """The modes of one record with one number of threads; `off` is NEON alone, `on` the target."""

    model: str
    dtype: str
    where: str
    off: CpuProfile
    on: CpuProfile | None

    @property
    def profiles(self) -> tuple[CpuProfile, ...]:
        return (self.off,) if self.on is None else (self.on, self.off)


def read(path: Path) -> list[Group]:
    """The modes in the run record at `path`.

    Raises:
        UsageError: it cannot be read, or is no record of a Cortex-A run that succeeded.
    """
    data = record.read(path)
    if reason := data["exit"]["reason"]:
        raise UsageError("a run without a good end", where=str(path), why=reason)
    profiles = [from_json(told) for key, told in data["profile"].items() if key != NPU]
    if BASELINE not in {profile.target for profile in profiles}:
        raise UsageError("no run record of a Cortex-A", where=str(path), why=f"no {BASELINE.name} in it")
    common = data["target"]["model"], data["provenance"].get("dtype", "unknown"), _where(data["platform"])
    return [_group(common, profiles, n) for n in dict.fromkeys(profile.threads for profile in profiles)]


def _where(platform: Mapping[str, str]) -> str:
    return " ".join(filter(None, (platform["kind"], platform.get("device"))))


def _group(common: tuple[str, str, str], profiles: Sequence[CpuProfile], threads: int) -> Group:
    modes = {profile.target: profile for profile in profiles if profile.threads == threads}
    off = modes.pop(BASELINE)
    return Group(*common, off, next(iter(modes.values()), None))


def study(groups: Sequence[Group]) -> dict[str, Any]:
    """Both tables and what others have published, as data."""
    categories: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        categories.setdefault(group.off.unit, []).extend(_categories(group))
    return {"latency": _latencies(groups), "categories": categories, "published": published.read()}


def _latencies(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """A row for each group; for what the study has and no group, a row of n/a."""
    rows = [_latency(group) for group in groups]
    for model, dtype in dict.fromkeys((group.model, group.dtype) for group in groups):
        known = {
            (g.off.threads, g.off.power)
            for g in groups
            if (g.model, g.dtype) == (model, dtype) and g.off.latencies
        }
        missing = ((cores, power) for cores in _CORES for power in _POWERS if (cores, power) not in known)
        rows += [_row(model, dtype, cores, power) for cores, power in missing]
    measured = [row for row in rows if row["off_ms"] is not None or row["where"] is None]
    return sorted(measured, key=lambda row: (row["model"], row["dtype"], row["threads"], row["power"]))


def _row(model: str, dtype: str, threads: int, power: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("with", "off_ms", "on_ms", "speed_up", "nature", "where"))
    return {"model": model, "dtype": dtype, "threads": threads, "power": power, **nothing}


def _latency(group: Group) -> dict[str, Any]:
    off, on = group.off.latency, group.on.latency if group.on else None
    return _row(group.model, group.dtype, group.off.threads, group.off.power) | {
        "with": group.on.target.title if group.on else None,
        "off_ms": None if off is None else off / 1e6,
        "on_ms": None if on is None else on / 1e6,
        "speed_up": None if off is None or on is None else ratio(off, on),
        "nature": group.off.nature,
        "where": group.where,
    }


def _categories(group: Group) -> Iterator[dict[str, Any]]:
    common = {"model": group.model, "type": group.dtype, "cores": group.off.threads, "power": group.off.power}
    for row in category_rows(group.profiles):
        on = group.on.title if group.on else ""
        yield common | {
            "category": row["category"],
            "off": row[group.off.title],
            "share off": row[f"share {group.off.title}"],
            "with": group.on.target.title if group.on else None,
            "on": row.get(on),
            "share on": row.get(f"share {on}"),
            "off / on": row.get(f"{group.off.title} / {on}"),
            "where": group.where,
        }


def to_text(document: Mapping[str, Any]) -> str:
    """The tables for the terminal."""
    latency = [_latency_text(row) for row in document["latency"]]
    blocks = [f"latency of the model, measured; off is NEON alone:\n{table(latency)}"]
    for unit, rows in document["categories"].items():
        blocks.append(f"one inference by category, in {unit}; off is NEON alone:\n{table(rows)}")
    return "\n\n".join([*blocks, published.to_text(document["published"])])


def _latency_text(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model": row["model"],
        "type": row["dtype"],
        "cores": row["threads"],
        "power": row["power"],
        "off ms": _digits(row["off_ms"], 3),
        "with": row["with"],
        "on ms": _digits(row["on_ms"], 3),
        "speed-up": _digits(row["speed_up"], 2),
        "where": row["where"] or "not measured",
    }


def _digits(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def to_perfetto(groups: Sequence[Group]) -> dict[str, Any]:
    """A timeline of each mode's profiled inference, a lane for each category.

    A counted profile has no time: a thousand instructions are drawn as a microsecond, and its name says so.
    """
    events: list[dict[str, Any]] = []
    modes = [(group, profile) for group in groups for profile in group.profiles]
    for process, (group, profile) in enumerate(modes):
        scale = "" if profile.unit == "ns" else f", {_TICKS_PER_MICROSECOND} instructions as 1 us"
        name = f"{group.model} {group.dtype} {profile.title} on {group.where}{scale}"
        events += perfetto.names(process, name, _LANES)
        events.append(_span(process, 0, "inference", 0, profile.inference))
        for operator in profile.operators:
            lane = _LANES.index(operator.category)
            details = {"path": operator.path, "cost": operator.cost, "unit": profile.unit}
            details |= {"classes": dict(operator.classes), "kernels": dict(operator.kernels)}
            event = _span(process, lane, operator.name, operator.start, operator.cost)
            events.append(event | {"args": details})
    return perfetto.document(events)


def _span(process: int, lane: int, name: str, start: int, cost: int) -> dict[str, Any]:
    scale = _TICKS_PER_MICROSECOND
    return perfetto.span(process, lane, name, start / scale, cost / scale)

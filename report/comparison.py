# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: what each costs, and which costs may be compared.

Costs are compared only if they are of the same counter, unit and nature (`report.record.NATURES`) and of the
same model: cycles of an NPU, instructions of a CPU and milliseconds have no common unit. A run that failed
has no costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from report import published
from report.cpu_profile import CpuProfile
from report.record import Metric, tool_version
from report.runs import Run

COMPARISON_VERSION = 1

COUNTERS: Mapping[str, str] = {
    "latency": "latency of one inference",
    "npu_active": "cycles in which the NPU is active",
    "instructions": "instructions of one inference",
    "vela_cycles_total": "cycles as Vela estimates them",
}
"""What runs are compared by, in words; everything else that they count is kept beside it."""

_CLOCKED = frozenset({"npu_active", "vela_cycles_total"})
"""Counters in cycles of the NPU, which a clock turns into time."""

_ON_THE_HEAP = "XNNPACK allocates while it runs"


def distinct(runs: Sequence[Run]) -> list[Run]:
    """Without runs that tell the same again, as NEON's do in the records of two targets."""
    found: list[Run] = []
    told: list[Run] = []
    for run in runs:
        counted = tuple(metric for metric in run.metrics if metric.name in COUNTERS)
        same = replace(run, metrics=counted, warnings=(), source="")
        if same not in told:
            told.append(same)
            found.append(run)
    return found


def document(runs: Sequence[Run], clocks: Mapping[str, float]) -> dict[str, Any]:
    """The comparison as data, one JSON document.

    Args:
        clocks: of NPUs in MHz, by target; "" is that of all others, missing is unknown.
    """
    return {
        "comparison_version": COMPARISON_VERSION,
        "tool": f"armdeploy {tool_version()}",
        "runs": [_row(number, run) for number, run in enumerate(runs, 1)],
        "comparisons": [asdict(group) for group in _groups(runs, clocks)],
        "remarks": list(_remarks(runs)),
        "published": published.read() if any(run.profile for run in runs) else [],
    }


def _row(number: int, run: Run) -> dict[str, Any]:
    return {
        "run": number,
        "model": run.model,
        "model_sha256": run.model_sha256,
        "delegates": run.delegates,
        "cpu_kernels": list(run.kernels),
        "target": run.target,
        "dtype": run.dtype,
        "system": run.system,
        "where": run.where,
        "timing_adapter": run.timing,
        "output": run.output,
        "failed": run.failed,
        "program_bytes": run.program_bytes,
        "ram_bytes": run.ram_bytes,
        "ram_note": _ON_THE_HEAP if run.ram_bytes is None and run.profile else "",
        "cpu_operators": run.cpu_operators,
        "metrics": [asdict(metric) for metric in run.metrics],
        "categories": _categories(run.profile) if run.profile and not run.failed else None,
        "npu": None if run.failed else run.npu,
        "tools": dict(run.tools),
        "warnings": list(run.warnings),
        "source": run.source,
    }


def _categories(profile: CpuProfile) -> dict[str, Any]:
    largest = sorted(profile.operators, key=lambda operator: -operator.cost)[:_LARGEST]
    return {
        "unit": profile.unit,
        "nature": profile.nature,
        "whole": profile.inference,
        "sums": profile.by_category(),
        "largest": [
            {"operator": each.name, "category": each.category, "kernel": each.path, "cost": each.cost}
            for each in largest
        ],
    }


_LARGEST = 10
"""Operators that are shown of a profile."""


@dataclass(frozen=True)
class Row:
    """One run in a comparison.

    Attributes:
        value: None is n/a, and `note` says why.
        ratio: to the first run that has a value; None without one.
        milliseconds: at `mhz`, for a counter of cycles whose clock is known.
    """

    run: int
    target: str
    dtype: str
    value: float | None
    ratio: float | None
    note: str
    mhz: float | None = None
    milliseconds: float | None = None


@dataclass(frozen=True)
class Group:
    """Runs of one model that may be compared: one counter, unit and nature."""

    model: str
    counter: str
    title: str
    unit: str
    nature: str
    rows: tuple[Row, ...]


def _groups(runs: Sequence[Run], clocks: Mapping[str, float]) -> Iterator[Group]:
    """By model, then in the order of COUNTERS; a group in which nothing is known is left to the remarks."""
    numbered = list(enumerate(runs, 1))
    for key in dict.fromkeys(run.key for run in runs):
        for counter, title in COUNTERS.items():
            kinds: dict[tuple[str, str], list[tuple[int, Run, Metric]]] = {}
            for number, run in numbered:
                for metric in run.metrics if run.key == key and not run.failed else ():
                    if metric.name == counter:
                        kinds.setdefault((metric.unit, metric.nature), []).append((number, run, metric))
            for (unit, nature), members in kinds.items():
                if any(metric.value is not None for *_, metric in members):
                    yield Group(key[0], counter, title, unit, nature, tuple(_rows(members, clocks)))


def _rows(members: Sequence[tuple[int, Run, Metric]], clocks: Mapping[str, float]) -> Iterator[Row]:
    first = next(metric.value for *_, metric in members if metric.value is not None)
    for number, run, metric in members:
        value, mhz = metric.value, _clock(run, metric, clocks)
        yield Row(
            run=number,
            target=run.target,
            dtype=run.dtype,
            value=value,
            ratio=value / first if value is not None and first else None,
            note=metric.note,
            mhz=mhz,
            milliseconds=value / mhz / 1000 if value is not None and mhz else None,
        )


def _clock(run: Run, metric: Metric, clocks: Mapping[str, float]) -> float | None:
    return clocks.get(run.target, clocks.get("")) if metric.name in _CLOCKED else None


def _remarks(runs: Sequence[Run]) -> Iterator[str]:
    """What a reader has to know before comparing."""
    models = {run.key for run in runs if not run.failed}
    if len(models) > 1:
        yield "the runs are of different models: only those of one model are compared"
    numbered = [(number, run) for number, run in enumerate(runs, 1) if not run.failed]
    for tool in ("ethos-u-vela", "executorch"):
        versions = {run.tools.get(tool) for _, run in numbered} - {None}
        if len(versions) > 1:
            yield f"made with different versions of {tool}: {', '.join(sorted(map(str, versions)))}"
    if unnamed := [number for number, run in numbered if run.model_sha256 is None]:
        yield f"no compile report: that {_named(unnamed)} is of this model is told by its name alone"
    kernels: dict[str, list[int]] = {}
    for number, run in numbered:
        if run.macs and run.kernels:
            kernels.setdefault(", ".join(dict.fromkeys(run.kernels)), []).append(number)
    for names, members in kernels.items():
        yield f"NPU cycles do not contain what the CPU does: {_named(members)}: {names}"
    unmeasured = [number for number, run in numbered if not _measured(run)]
    if unmeasured:
        yield f"latency: n/a for {_named(unmeasured)}: no hardware ran it"


def _measured(run: Run) -> bool:
    return any(metric.name == "latency" and metric.value is not None for metric in run.metrics)


def _named(numbers: Sequence[int]) -> str:
    return f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"

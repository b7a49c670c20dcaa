# SPDX-License-Identifier: Apache-2.0
"""Runs side by side, from their records: what each costs, and which costs may be compared.

A record gives one run, that of a Cortex-A one for each mode. Costs are compared only if they are of the same
counter, unit and nature (`report.record.NATURES`) and of the same model: cycles of an NPU, instructions of a
CPU and milliseconds have no common unit. A run that failed has no costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from report import published, record
from report.cpu_profile import CpuProfile, from_json
from report.errors import ArmdeployError
from report.record import Metric, tool_version

COMPARISON_VERSION = 1
NPU = "npu"
"""Of a record's profiles, the one that is of no CPU."""

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


@dataclass(frozen=True)
class Run:
    """One run, or one mode of it.

    Attributes:
        target: as `armdeploy` spells it, with the number of threads where that is not one.
        dtype, system, where: of the program; system configuration and memory mode; the platform.
        output: "exact" or "close" to its reference, or why the run failed.
        exit_code: of the run; its numbers do not count if it failed.
        program_bytes, ram_bytes: of the .pte; of the planned memory and the NPU's scratch. None is unknown.
        cpu_operators: those outside delegates with their reasons, None where no compile report tells.
        metrics: every number that it has; `profile` the operators of a CPU, `npu` those of NPU networks.
        source: the file that it was read from.
    """

    model: str
    model_sha256: str | None
    target: str
    dtype: str
    system: str
    where: str
    output: str
    exit_code: int
    program_bytes: int | None
    ram_bytes: int | None
    cpu_operators: Sequence[Mapping[str, Any]] | None
    metrics: tuple[Metric, ...]
    profile: CpuProfile | None = None
    npu: Mapping[str, Any] | None = None
    macs: int | None = None
    pte_sha256: str = ""
    tools: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    source: str = ""

    @property
    def failed(self) -> bool:
        return self.exit_code != 0

    @property
    def key(self) -> tuple[str, str | None]:
        """Runs for which it is equal are of one model."""
        return self.model, self.model_sha256


# --- reading ------------------------------------------------------------------------------------------------


def read(path: Path) -> list[Run]:
    """The runs in the record at `path`, which ``armdeploy run --json`` has printed.

    Raises:
        UsageError: see `report.record.read`.
    """
    return runs_of(record.read(path), str(path))


def runs_of(found: Mapping[str, Any], source: str) -> list[Run]:
    """The runs in a record that fits its schema."""
    profiles = {key: from_json(told) for key, told in found["profile"].items() if key != NPU}
    metrics = [Metric(**metric) for metric in found["metrics"]]
    if not profiles:
        return [_run(found, source, found["target"]["npu"] or found["target"]["cpu"], tuple(metrics), None)]
    shared = [metric for metric in metrics if not any(metric.name.endswith(f"_{key}") for key in profiles)]
    runs: list[Run] = []
    for key, profile in profiles.items():
        threads = f" x{profile.threads}" if profile.threads > 1 else ""
        own = (*_of_mode(metrics, key), *(() if runs else shared))  # what is of no mode is of the first
        runs.append(_run(found, source, profile.target.name + threads, own, profile))
    return runs


def _of_mode(metrics: Sequence[Metric], key: str) -> Iterator[Metric]:
    """Those whose names end with the mode's, without that ending."""
    for metric in metrics:
        if metric.name.endswith(f"_{key}"):
            yield replace(metric, name=metric.name.removesuffix(f"_{key}"))


def _run(
    found: Mapping[str, Any],
    source: str,
    target: str,
    metrics: tuple[Metric, ...],
    profile: CpuProfile | None,
) -> Run:
    of, made = found["target"], found["provenance"]
    program = made.get("pte", {})
    return Run(
        model=of["model"],
        model_sha256=made.get("model_sha256"),
        target=target,
        dtype=made.get("dtype", "unknown"),
        system=", ".join(filter(None, (of["system_config"], of["memory_mode"]))),
        where=_where(found["platform"]),
        output=found["exit"]["reason"] or _output(found["checks"]),
        exit_code=found["exit"]["code"],
        program_bytes=program.get("size"),
        ram_bytes=_ram(found["memory"]),
        cpu_operators=made.get("cpu_operators"),
        metrics=metrics,
        profile=profile,
        npu=found["profile"].get(NPU),
        macs=of["macs"],
        pte_sha256=program.get("sha256", ""),
        tools=made.get("tools", {}),
        warnings=tuple(found["warnings"]),
        source=source,
    )


def _where(platform: Mapping[str, str]) -> str:
    named = (platform["kind"], *(platform[key] for key in ("board", "device", "runner") if platform.get(key)))
    return ", ".join(named)


def _output(checks: Sequence[Mapping[str, str]]) -> str:
    """As `report.run_text.verdict` says it."""
    passed = [c["detail"] for c in checks if c["kind"] == "comparison" and c["result"] == "pass"]
    return "exact" if all(detail.startswith("exact") for detail in passed) else "close"


def _ram(memory: Mapping[str, Any]) -> int | None:
    if "scratch_peak_bytes" not in memory:
        return None
    return int(memory["planned_peak_bytes"] + memory["scratch_peak_bytes"])


def distinct(runs: Sequence[Run]) -> list[Run]:
    """Without runs that tell the same again, as NEON's do in the records of two targets."""
    found = {(r.target, r.dtype, r.pte_sha256, r.where, r.output, r.metrics): r for r in reversed(runs)}
    return list(found.values())[::-1]


def failure(model: str, target: str, dtype: str, error: ArmdeployError) -> Run:
    """A run that could not be made at all."""
    reason = error.one_line()
    return Run(model, None, target, dtype, "", "", reason, error.exit_code, None, None, None, ())


# --- comparing ----------------------------------------------------------------------------------------------


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
        "target": run.target,
        "dtype": run.dtype,
        "system": run.system,
        "where": run.where,
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
    cpu = [number for number, run in numbered if run.macs and run.cpu_operators]
    if cpu:
        yield f"NPU cycles do not contain the operators on the CPU ({_named(cpu)})"
    unmeasured = [number for number, run in numbered if not _measured(run)]
    if unmeasured:
        yield f"latency: n/a for {_named(unmeasured)}: no hardware ran it"


def _measured(run: Run) -> bool:
    known = (metric for metric in run.metrics if metric.name in COUNTERS and metric.value is not None)
    return any(metric.nature == "measured" for metric in known)


def _named(numbers: Sequence[int]) -> str:
    return f"run{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"

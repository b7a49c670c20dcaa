# SPDX-License-Identifier: Apache-2.0
"""A comparison for the terminal: a pure function of its document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from report import published
from report.tables import plain, table


def to_text(document: Mapping[str, Any]) -> str:
    """The runs, a table for each counter they may be compared by, what limits the comparison."""
    blocks = [table([_run(run) for run in document["runs"]]), *map(_group, document["comparisons"])]
    details: dict[str, list[str]] = {}
    for run in document["runs"]:
        for text in _details(run):
            details.setdefault(text, []).append(str(run["run"]))
    lines = [f"run{'s' if len(runs) > 1 else ''} {', '.join(runs)}: {text}" for text, runs in details.items()]
    blocks += ["\n".join(map(plain, each)) for each in (lines, document["remarks"]) if each]
    if document["published"]:
        blocks.append(published.to_text(document["published"]))
    return "\n\n".join(blocks)


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    operators = run["cpu_operators"]
    return {
        "run": run["run"],
        "model": run["model"],
        "target": run["target"],
        "type": run["dtype"],
        "system": run["system"] or None,
        "on": run["where"] or None,
        "output": "failed" if run["failed"] else run["output"],
        "program": run["program_bytes"],
        "RAM": run["ram_bytes"],
        "fallback": None if operators is None else len(operators),
    }


def _group(group: Mapping[str, Any]) -> str:
    rows = [_row(row, group["unit"]) for row in group["rows"]]
    if not any(row["milliseconds"] for row in group["rows"]):
        for row in rows:
            row.pop("time")
    head = f"{group['model']}: {group['title']} ({group['counter']}, {group['nature']})"
    return f"{plain(head)}\n{table(rows)}"


def _row(row: Mapping[str, Any], unit: str) -> dict[str, Any]:
    value, time = row["value"], row["milliseconds"]
    return {
        "run": row["run"],
        "target": row["target"],
        "type": row["dtype"],
        unit_shown(unit): None if value is None else shown(value, unit),
        "of the first": None if row["ratio"] is None else f"{row['ratio']:.3f}",
        "time": None if time is None else f"{time:,.3f} ms at {row['mhz']:g} MHz",
        "": row["note"],
    }


def unit_shown(unit: str) -> str:
    """The unit in which `shown` gives a value of `unit`."""
    return "ms" if unit == "ns" else unit


def shown(value: float, unit: str) -> str:
    """A cost for a reader."""
    return f"{value / 1e6:,.3f}" if unit == "ns" else f"{value:,}"


def _details(run: Mapping[str, Any]) -> Iterator[str]:
    """What a run's numbers come from, in one line each."""
    if run["failed"]:
        yield f"failed: {run['output']}"
    for network in run["npu"]["networks"] if run["npu"] else ():
        yield f"delegate {network['id']}, {network['bottleneck']}"
    for reason, operators in by_reason(run["cpu_operators"] or []).items():
        yield f"on the CPU: {', '.join(operators)}: {reason}"
    for warning in run["warnings"]:
        yield f"warning: {warning}"


def by_reason(operators: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Operators that stay on the CPU, each once, by the reason why."""
    found: dict[str, list[str]] = {}
    for operator in operators:
        names = found.setdefault(operator["reason"], [])
        if operator["op"] not in names:
            names.append(operator["op"])
    return found

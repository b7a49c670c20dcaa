# SPDX-License-Identifier: Apache-2.0
"""Gates on a run: budgets, and what may not grow against an earlier run. All from run records.

A number that is not known passes no gate: nothing was shown of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from report import record
from report.errors import UsageError
from report.record import EXACT, Metric
from report.runs import Run, runs_of
from report.tables import plain, table

_WATCHED = (
    *("npu_active", "instructions", "latency", "program_bytes", "ram_bytes"),
    *("cpu_operators", "cpu_kernels", "delegates"),
)
"""What may not grow: numbers with these names, a Cortex-A's with its mode behind them."""

RUN, OUTPUT, FALLBACK = "run", "output", "fallback"
"""Gates that are no numbers: the run itself, how close its output is, what was not on the CPU before."""

_DERIVED = "record"
"""Source of numbers that are facts of the program: the nature that a `Metric` wants is not shown."""


@dataclass(frozen=True)
class Gate:
    """One condition and whether it holds; `detail` says by what numbers."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Subject:
    """A run record as gates see it.

    Attributes:
        run: its first mode.
        numbers: by name; those that are no metrics have no nature.
    """

    run: Run
    numbers: Mapping[str, Metric]


def read(path: Path) -> Subject:
    """What gates need of the record at `path`.

    Raises:
        UsageError: see `report.record.read`.
    """
    return subject(record.read(path), str(path))


def subject(found: Mapping[str, Any], source: str) -> Subject:
    """What gates need of a record that fits its schema."""
    run = runs_of(found, source)[0]
    metrics = [Metric(**metric) for metric in found["metrics"]]
    numbers = {metric.name: metric for metric in (*metrics, *_sizes(run))}
    return Subject(run, numbers)


def _sizes(run: Run) -> Iterator[Metric]:
    operators = None if run.cpu_operators is None else len(run.cpu_operators)
    for name, value, unit, why in (
        ("program_bytes", run.program_bytes, "bytes", "the record does not tell"),
        ("ram_bytes", run.ram_bytes, "bytes", "not planned when the program was compiled"),
        ("cpu_operators", operators, "operators", "no compile report was beside the program"),
        ("cpu_kernels", len(run.kernels), "kernels", ""),
        ("delegates", run.delegates, "delegates", ""),
    ):
        yield Metric(name, value, unit, "estimated", _DERIVED, "" if value is not None else why)


# --- the gates ----------------------------------------------------------------------------------------------


def check(
    now: Subject,
    before: Subject | None,
    limits: Mapping[str, float],
    tolerances: Mapping[str, float],
) -> list[Gate]:
    """Every gate: the run's success, each limit, and each watched number against the run before.

    Args:
        limits: largest values by name.
        tolerances: growth in per cent that is no regression, by name; "" is that of all others.

    Raises:
        UsageError: an unknown name, or `before` is no baseline of `now`.
    """
    if now.run.failed:
        return [Gate(RUN, passed=False, detail=f"failed: {now.run.output}")]
    known = {**now.numbers, **(before.numbers if before else {})}
    for option, names in (("--max", limits), ("--tolerance", tolerances)):
        for name in names:
            if name and name not in known:
                raise UsageError(f"no number {name!r}", where=option, hint=f"known: {', '.join(known)}")
    gates = [Gate(RUN, passed=True, detail=f"output {now.run.output}")]
    gates += [_budget(name, now.numbers.get(name), limit) for name, limit in limits.items()]
    if before is not None:
        _require_baseline(now.run, before.run)
        gates += _regressions(now, before, tolerances)
    return gates


def _budget(name: str, number: Metric | None, limit: float) -> Gate:
    gate = f"{name} budget"
    if number is None or number.value is None:
        why = number.note if number else "not counted"
        return Gate(gate, passed=False, detail=f"n/a: {why}; at most {limit:,g}")
    passed = number.value <= limit
    return Gate(gate, passed, f"{_said(number)}, at most {limit:,g}{_change(number.value, limit)}")


def _require_baseline(now: Run, before: Run) -> None:
    for what in ("model", "target", "dtype", "system", "where", "timing"):
        new, old = getattr(now, what), getattr(before, what)
        if new != old:
            name = {"where": "platform", "timing": "memory timing"}.get(what, what)
            why = f"its {name} is {old or 'not told'}, the run's {new or 'not told'}"
            raise UsageError("no baseline of this run", where=before.source, why=why)
    if before.failed:
        raise UsageError("no baseline", where=before.source, why=f"that run failed: {before.output}")


def _regressions(now: Subject, before: Subject, tolerances: Mapping[str, float]) -> Iterator[Gate]:
    worse = before.run.output == EXACT != now.run.output
    yield Gate(OUTPUT, not worse, f"{now.run.output}, {before.run.output} before")
    for name in {**now.numbers, **before.numbers}:
        if name.startswith(_WATCHED):
            tolerance = tolerances.get(name, tolerances.get("", 0.0))
            yield from _regression(name, now.numbers.get(name), before.numbers.get(name), tolerance)
    yield _fallback(now.run, before.run)


def _regression(name: str, new: Metric | None, old: Metric | None, tolerance: float) -> Iterator[Gate]:
    """Nothing if neither run knows the number; what only one of them knows does not pass."""
    value, former = (number.value if number else None for number in (new, old))
    if value is None and former is None:
        return
    if new is None or old is None or value is None or former is None:
        yield Gate(name, passed=False, detail=f"{_said(new)}, {_said(old)} before")
    elif (new.nature, new.unit) != (old.nature, old.unit):
        yield Gate(name, passed=False, detail=f"{_said(new)}, but {_said(old)} before: no comparison")
    else:
        allowed = f", {tolerance:g} % more allowed" if tolerance else ""
        passed = value <= former * (1 + tolerance / 100)
        yield Gate(name, passed, f"{_said(new)}, {former:,} before{_change(value, former)}{allowed}")


def _fallback(now: Run, before: Run) -> Gate:
    """By operator with its reason if both have a compile report, else by kernel."""
    if now.cpu_operators is not None and before.cpu_operators is not None:
        known = {operator["op"] for operator in before.cpu_operators}
        found = {operator["op"]: f": {operator['reason']}" for operator in now.cpu_operators}
    else:
        known, found = set(before.kernels), dict.fromkeys(now.kernels, "")
    new = "; ".join(f"{name}{reason}" for name, reason in found.items() if name not in known)
    return Gate(FALLBACK, not new, f"new on the CPU: {new}" if new else "nothing new on the CPU")


def _said(number: Metric | None) -> str:
    if number is None or number.value is None:
        return f"n/a ({number.note if number else 'not counted'})"
    nature = f" ({number.nature})" if number.source != _DERIVED else ""
    return f"{number.value:,} {number.unit}{nature}"


def _change(new: float, old: float) -> str:
    return f" ({100 * (new / old - 1):+.1f} %)" if old and new != old else ""


# --- printers -----------------------------------------------------------------------------------------------


def document(now: Subject, before: Subject | None, gates: Sequence[Gate]) -> dict[str, Any]:
    """The verdict as data, one JSON document."""
    return {
        "record": now.run.source,
        "baseline": before.run.source if before else None,
        "model": now.run.model,
        "target": now.run.target,
        "passed": all(gate.passed for gate in gates),
        "gates": [asdict(gate) for gate in gates],
        "remarks": list(_remarks(now.run, before.run)) if before else [],
    }


def _remarks(now: Run, before: Run) -> Iterator[str]:
    """What changed between the runs and may be the cause."""
    if now.model_sha256 != before.model_sha256:
        yield "the model has changed"
    if now.inputs != before.inputs:
        yield "the input is another one"
    for tool, version in now.tools.items():
        if before.tools.get(tool) != version:
            yield f"{tool} is {version}, was {before.tools.get(tool)}"


def to_text(found: Mapping[str, Any]) -> str:
    """For the terminal, a line a gate."""
    rows = [
        {"": "ok" if gate["passed"] else "FAIL", "gate": gate["name"], "what": gate["detail"]}
        for gate in found["gates"]
    ]
    head = f"{found['model']} on {found['target']}"
    return "\n".join([plain(head), table(rows), *map(plain, found["remarks"])])


def to_junit(found: Mapping[str, Any]) -> str:
    """JUnit's XML, a test case for each gate."""
    failed = [gate for gate in found["gates"] if not gate["passed"]]
    name = plain(f"{found['model']} on {found['target']}")
    counts = {"tests": str(len(found["gates"])), "failures": str(len(failed))}
    suite = ElementTree.Element("testsuite", {"name": f"armdeploy check: {name}", **counts})
    for gate in found["gates"]:
        case = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": gate["name"]})
        kind = "system-out" if gate["passed"] else "failure"
        ElementTree.SubElement(case, kind).text = plain(gate["detail"])
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"

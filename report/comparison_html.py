# SPDX-License-Identifier: Apache-2.0
"""A comparison as one HTML page that needs nothing else: a pure function of its document.

A chart has the bars of one counter, unit and nature, as the tables do; its heading names the nature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from report import profile_text
from report.comparison_text import by_reason, shown, unit_shown
from report.tables import plain

_STYLE = Path(__file__).with_name("page.css")
_LARGEST = 10
"""NPU operations that are shown of a network."""


def to_html(document: Mapping[str, Any]) -> str:
    """The whole page."""
    models = ", ".join(dict.fromkeys(run["model"] for run in document["runs"]))
    title = safe(f"{models}: {len(document['runs'])} runs compared")
    body = "\n".join([*_head(models, document), *_charts(document), *_each(document), *_published(document)])
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


# --- parts of the page --------------------------------------------------------------------------------------


def _head(models: str, document: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h1>{safe(models)}</h1>"
    yield f'<p class="dim">{len(document["runs"])} runs, {safe(document["tool"])}</p>'
    yield _table(_OVERVIEW, [_overview(run) for run in document["runs"]])
    for remark in document["remarks"]:
        yield f'<p class="dim">{safe(remark)}</p>'


_OVERVIEW = ("run", "model", "target", "type", "system", "on", "output", "program", "RAM", "fallback")


def _overview(run: Mapping[str, Any]) -> list[str]:
    output = f"failed: {run['output']}" if run["failed"] else run["output"]
    operators = run["cpu_operators"]
    return [
        _number(run["run"]),
        _text(run["model"]),
        _name(run["target"]),
        _name(run["dtype"]),
        _text(run["system"]),
        _text(run["where"]),
        f'<td class="{"bad" if run["failed"] else "good"}">{safe(output)}</td>',
        _bytes(run["program_bytes"], "unknown"),
        _bytes(run["ram_bytes"], run["ram_note"] or "unknown"),
        _number(None if operators is None else len(operators), "no compile report"),
    ]


def _charts(document: Mapping[str, Any]) -> Iterator[str]:
    for group in document["comparisons"]:
        yield f"<h2>{safe(group['model'])}: {safe(group['title'])} {_nature(group['nature'])}</h2>"
        longest = max(row["value"] or 0 for row in group["rows"])
        timed = any(row["milliseconds"] for row in group["rows"])
        head = [
            "run",
            "target",
            "type",
            "",
            unit_shown(group["unit"]),
            "of the first",
            *(["time"] if timed else []),
            "",
        ]
        yield _table(head, [_chart_row(row, group["unit"], longest, timed=timed) for row in group["rows"]])


def _chart_row(row: Mapping[str, Any], unit: str, longest: float, *, timed: bool) -> list[str]:
    value, ratio, time = row["value"], row["ratio"], row["milliseconds"]
    cells = [
        _number(row["run"]),
        _name(row["target"]),
        _name(row["dtype"]),
        _bar(value, longest),
        _number(None if value is None else shown(value, unit), row["note"]),
        _number(None if ratio is None else f"{ratio:.3f}"),
    ]
    if timed:
        cells.append(_number(None if time is None else f"{time:,.3f} ms at {row['mhz']:g} MHz"))
    return [*cells, f'<td class="note">{safe(row["note"])}</td>']


def _each(document: Mapping[str, Any]) -> Iterator[str]:
    """What each run's numbers come from, folded."""
    yield "<h2>Run by run</h2>"
    for run in document["runs"]:
        title = f"{run['run']}: {run['model']} on {run['target']}, {run['dtype']}"
        yield f"<details><summary>{safe(title)}</summary>"
        yield from _fallback(run["cpu_operators"])
        for network in run["npu"]["networks"] if run["npu"] else ():
            yield from _network(network)
        if run["categories"]:
            yield from _categories(run["categories"])
        if run["metrics"]:
            yield "<h3>Every number</h3>"
            yield _table(("counter", "value", "unit", "nature", "source", ""), map(_metric, run["metrics"]))
        for warning in run["warnings"]:
            yield f"<p>warning: {safe(warning)}</p>"
        made = ", ".join(f"{name} {version}" for name, version in run["tools"].items() if version)
        made += f", memory timing {run['timing_adapter']}" if run["timing_adapter"] else ""
        yield f'<p class="dim">{safe(made)}<br><code>{safe(run["source"])}</code></p></details>'


def _fallback(operators: Sequence[Mapping[str, Any]] | None) -> Iterator[str]:
    if operators:
        yield "<h3>On the CPU</h3>"
        rows = [[_text(", ".join(names)), _text(reason)] for reason, names in by_reason(operators).items()]
        yield _table(("operators", "reason"), rows)


def _network(network: Mapping[str, Any]) -> Iterator[str]:
    largest = sorted(network["operations"], key=lambda operation: -operation["cycles"])[:_LARGEST]
    yield f"<h3>Delegate {network['id']}: {network['cycles']:,} cycles {_nature('simulated')}</h3>"
    yield f"<p>{safe(network['bottleneck'])}</p>"
    yield f'<p class="dim">the {len(largest)} largest of {len(network["operations"])} operations:</p>'
    head = ("id", "operation", "", "cycles", "share", "bound", "MAC use", "model")
    yield _table(head, [_operation(operation, largest[0]["cycles"]) for operation in largest])


def _operation(operation: Mapping[str, Any], longest: int) -> list[str]:
    return [
        _number(operation["id"]),
        _text(" ".join(filter(None, (operation["name"], operation["mode"])))),
        _bar(operation["cycles"], longest),
        _number(operation["cycles"]),
        _number(f"{operation['share']:.1%}"),
        _text(" ".join(filter(None, (operation["bound"], operation.get("port"))))),
        _number(f"{operation['utilisation']:.0%}" if operation["macs"] else None, "no multiplications"),
        _text(profile_text.place(operation)),
    ]


def _categories(found: Mapping[str, Any]) -> Iterator[str]:
    whole, unit = found["whole"], found["unit"]
    yield f"<h3>By category {_nature(found['nature'])}</h3>"
    rows = [
        [
            _text(name),
            _bar(cost, whole),
            _number(cost),
            _number(f"{cost / whole:.1%}" if whole else None),
        ]
        for name, cost in found["sums"].items()
    ]
    yield _table(("category", "", unit, "share"), rows)
    yield "<h3>Largest operators</h3>"
    yield _table(
        ("operator", "category", "kernel", unit),
        [
            [_text(o["operator"]), _text(o["category"]), _text(o["kernel"]), _number(o["cost"])]
            for o in found["largest"]
        ],
    )


def _metric(metric: Mapping[str, Any]) -> list[str]:
    value = metric["value"]
    shape = f"{value:.4g}" if isinstance(value, float) else value
    return [
        _text(metric["name"]),
        _number(shape, metric["note"]),
        *map(_text, (metric["unit"], metric["nature"], metric["source"], metric["note"])),
    ]


def _published(document: Mapping[str, Any]) -> Iterator[str]:
    """What others have published: shown apart, in no chart and no ratio."""
    for told in document["published"]:
        date = told["date"] or told["date_note"]
        yield f"<h2>{safe(told['title'])} {_nature('published')}</h2>"
        about, source = (
            "; ".join((told["model"], told["device"], told["runtime"], date)),
            safe(told["source"]),
        )
        yield f'<p class="dim">{safe(about)}<br><a href="{source}">{source}</a></p>'
        head = ("type", "cores", "power", "without SME2, ms", "with SME2, ms", "speed-up")
        yield _table(head, map(_latency, told["latency"]))
        for remark in told["remarks"]:
            yield f'<p class="dim">{safe(remark)}</p>'


def _latency(row: Mapping[str, Any]) -> list[str]:
    numbers = (row[key] for key in ("off_ms", "on_ms", "speed_up"))
    cells = [_number(None if number is None else f"{number:g}", "not stated") for number in numbers]
    return [_text(row["dtype"]), _number(row["threads"]), _text(row["power"]), *cells]


# --- cells --------------------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """`rows` are cells as `_text` and `_number` make them; a heading stands as its column's cells do."""
    lines = [list(row) for row in rows]
    first = lines[0] if lines else [""] * len(head)
    heads = [f'<th class="{_column(c)}">{safe(name)}</th>' for name, c in zip(head, first, strict=True)]
    body = "\n".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f'<div class="scroll"><table>\n<tr>{"".join(heads)}</tr>\n{body}\n</table></div>'


def _column(cell: str) -> str:
    return next((kind for kind in ("number", "bar") if f'class="{kind}' in cell), "")


def safe(text: str) -> str:
    """For HTML, without what is no character."""
    return escape(plain(text))


def _text(text: str) -> str:
    return f"<td>{safe(text)}</td>"


def _name(text: str) -> str:
    """On one line."""
    return f'<td class="name">{safe(text)}</td>'


def _number(value: int | str | None, why: str = "") -> str:
    """n/a with its reason as a tooltip where nothing is known."""
    if value is None:
        return f'<td class="number dim" title="{safe(why)}">n/a</td>'
    text = f"{value:,}" if isinstance(value, int) else safe(value)
    return f'<td class="number">{text}</td>'


def _bar(value: float | None, longest: float) -> str:
    width = 100 * (value or 0) / longest if longest else 0
    return f'<td class="bar"><div style="width:{width:.2f}%"></div></td>'


def _bytes(value: int | None, why: str) -> str:
    return _number(None if value is None else f"{value:,} B", why)


def _nature(nature: str) -> str:
    return f'<span class="nature">{safe(nature)}</span>'

# SPDX-License-Identifier: Apache-2.0
"""The compile report as text: pure functions of the report's data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def summary(report: Mapping[str, Any]) -> str:
    """The report of one target as a few short tables."""
    blocks = [
        _head(report),
        _delegates(report["delegates"]),
        _cpu_ops(report["cpu_ops"]),
        _boundary(report["boundary_ops"]),
        _memory(report),
        [f"warning: {warning}" for warning in report["warnings"]],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def fallback_table(cpu_ops: Sequence[Mapping[str, Any]]) -> list[str]:
    """The operators that stay on the CPU, each with its reason; equal ones are counted."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for op in cpu_ops:
        key = (op["op"], op.get("kernel") or "none, optimised away" if "kernel" in op else "", op["reason"])
        groups.setdefault(key, []).append(op["module_path"] or op["name"])
    rows = [
        (name, str(len(places)), _places(places), kernel, reason)
        for (name, kernel, reason), places in groups.items()
    ]
    return table(("operator", "count", "in", "kernel", "reason"), rows)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Left aligned columns, two blanks apart; columns that are empty in every row are left out."""
    rows = list(rows)
    keep = [i for i in range(len(header)) if any(row[i] for row in rows)]
    grid = [[line[i] for i in keep] for line in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in grid]


def _places(places: Sequence[str]) -> str:
    shown = list(dict.fromkeys(places))
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def _head(report: Mapping[str, Any]) -> list[str]:
    cpu, delegates = len(report["cpu_ops"]), len(report["delegates"])
    return [
        f"{report['model']} for {report['target']}, {report['quantization']['dtype']}, "
        f"{report['system_config']}, {report['memory_mode']}",
        f"{delegates} partition(s) on the NPU, {cpu} operator(s) on the CPU",
        f"{report['pte']['path']}  {report['pte']['size']:,} bytes  sha256 {report['pte']['sha256'][:16]}",
    ]


def _delegates(delegates: Sequence[Mapping[str, Any]]) -> list[str]:
    if not delegates:
        return []
    rows = [
        (
            str(d["id"]),
            str(sum(d["operators"].values())),
            f"{d['command_stream_bytes']:,}",
            f"{d['weight_bytes']:,}",
            f"{d['scratch_bytes']:,}",
            _estimate(d, "nn_macs"),
            _estimate(d, "cycles_total"),
        )
        for d in delegates
    ]
    header = ("delegate", "operators", "commands", "weights", "scratch", "MACs", "cycles (estimated by Vela)")
    return table(header, rows)


def _estimate(delegate: Mapping[str, Any], metric: str) -> str:
    value = delegate["vela"].get(metric, {}).get("value")
    return "n/a" if value is None else f"{value:,.0f}"


def _cpu_ops(cpu_ops: Sequence[Mapping[str, Any]]) -> list[str]:
    return ["on the CPU:", *fallback_table(cpu_ops)] if cpu_ops else []


def _boundary(ops: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [
        (op["side"], op["kernel"] or op["op"], op["dtype"], f"{op['scale']:.8g}", str(op["zero_point"]))
        for op in ops
        if op["scale"] is not None
    ]
    header = ("boundary", "kernel", "type", "scale", "zero point")
    return table(header, rows) if rows else []


def _memory(report: Mapping[str, Any]) -> list[str]:
    memory = report["memory"]
    planned = ", ".join(
        f"id {i}: {size:,}" for i, size in enumerate(memory["planned_bytes"]) if i > 0 or size
    )
    return [f"memory in bytes: planned {planned or 'none'}; largest scratch {memory['scratch_peak_bytes']:,}"]

# SPDX-License-Identifier: Apache-2.0
"""The compile report as text: pure functions of the report's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from report.tables import table


def summary(report: Mapping[str, Any]) -> str:
    """The report of one target as a few short tables."""
    blocks = [
        _head(report),
        table([_delegate(delegate) for delegate in report["delegates"]]),
        _cpu_ops(report["cpu_ops"]),
        table([_boundary(op) for op in report["boundary_ops"]]),
        _memory(report["memory"]),
        "\n".join(f"warning: {warning}" for warning in report["warnings"]),
    ]
    return "\n\n".join(block for block in blocks if block)


def fallback_table(cpu_ops: Sequence[Mapping[str, Any]]) -> str:
    """The operators that stay on the CPU, each with its reason; equal ones are counted.

    Args:
        cpu_ops: records of a report; without the key "kernel" that column is left out.
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    places: dict[tuple[str, ...], list[str]] = {}
    for op in cpu_ops:
        kernel = {"kernel": op["kernel"] or "none, optimised away"} if "kernel" in op else {}
        key = (op["op"], op["reason"], *kernel.values())
        places.setdefault(key, []).append(op["module_path"] or op["name"])
        rows[key] = {"operator": op["op"], **_where(places[key]), **kernel, "reason": op["reason"]}
    return table(list(rows.values()))


def _where(places: Sequence[str]) -> dict[str, Any]:
    """How often, and in which modules: three of them are named."""
    names = list(dict.fromkeys(places))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return {"count": len(places), "in": ", ".join(names[:3]) + more}


def _head(report: Mapping[str, Any]) -> str:
    program, npu, cpu = report["pte"], len(report["delegates"]), len(report["cpu_ops"])
    return (
        f"{report['model']} for {report['target']}, {report['quantization']['dtype']}, "
        f"{report['system_config']}, {report['memory_mode']}\n"
        f"{npu} partition(s) on the NPU, {cpu} operator(s) on the CPU\n"
        f"{program['path']}  {program['size']:,} bytes  sha256 {program['sha256'][:16]}"
    )


def _delegate(delegate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "delegate": delegate["id"],
        "operators": sum(delegate["operators"].values()),
        "commands": delegate["command_stream_bytes"],
        "weights": delegate["weight_bytes"],
        "scratch": delegate["scratch_bytes"],
        "MACs": delegate["vela"].get("nn_macs", {}).get("value"),
        "cycles (estimated by Vela)": delegate["vela"].get("cycles_total", {}).get("value"),
    }


def _cpu_ops(cpu_ops: Sequence[Mapping[str, Any]]) -> str:
    return f"on the CPU:\n{fallback_table(cpu_ops)}" if cpu_ops else ""


def _boundary(op: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "boundary": op["side"],
        "kernel": op["kernel"],
        "type": op["dtype"],
        "scale": None if op["scale"] is None else f"{op['scale']:.8g}",
        "zero point": op["zero_point"],
    }


def _memory(memory: Mapping[str, Any]) -> str:
    sizes = [f"id {i}: {size:,}" for i, size in enumerate(memory["planned_bytes"]) if size]
    return (
        f"memory in bytes: planned {', '.join(sizes) or 'none'}; "
        f"largest scratch {memory['scratch_peak_bytes']:,}"
    )

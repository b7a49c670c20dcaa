# SPDX-License-Identifier: Apache-2.0
"""A Cortex-A run for the terminal: pure functions of its record, its profiles and the output arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from report import kernel_evidence
from report.cpu_profile import CpuProfile, category_rows, latency_row
from report.record import Metric, RunRecord
from report.run_text import checks_lines, line, tensor_text, values_lines, verdict
from report.tables import table


def to_text(
    record: RunRecord,
    profiles: Sequence[CpuProfile],
    outputs: Sequence[np.ndarray],
    labels: Sequence[str],
    top: int,
) -> str:
    """Head, outputs, category table, kernel evidence, checks, verdict."""
    details = ", ".join(
        value for key, value in record.platform.items() if key not in ("kind", "runner_sha256")
    )
    lines = [
        f"{record.target['model']} on {record.target['cpu']}, {record.provenance['dtype']}",
        line("platform", f"{record.platform['kind']}: {details}"),
        *(line("input", f"{tensor_text(t)}: {record.provenance['input_source']}") for t in record.inputs),
    ]
    for tensor, array in zip(record.outputs, outputs, strict=True):
        lines += [line("output", tensor_text(tensor)), *values_lines(array, labels, top)]
    blocks = ["\n".join(lines), *profile_blocks(profiles)]
    ending = [
        *checks_lines(record.checks),
        *(
            line("distance", _error_text(metric))
            for metric in record.metrics
            if metric.name.endswith("_error")
        ),
        *(line("warning", text) for text in record.warnings),
    ]
    return "\n\n".join([*blocks, "\n".join([*ending, verdict(record)])])


def _error_text(metric: Metric) -> str:
    known = "n/a" if metric.value is None else f"{metric.value:.2g} {metric.unit}"
    return f"{metric.name}: {known} ({metric.nature}; {metric.note})"


def profile_blocks(profiles: Sequence[CpuProfile]) -> list[str]:
    """The tables of a run, categories by number of threads; [] when nothing was profiled."""
    if not profiles:
        return []
    first = profiles[0]
    what = f"{first.unit} of one inference after the first ({first.nature})"
    groups = [
        [profile for profile in profiles if profile.threads == threads]
        for threads in dict.fromkeys(profile.threads for profile in profiles)
    ]
    evidence = kernel_evidence.rows(groups[0])
    return [
        *(
            [f"latency without profiler (measured):\n{table([latency_row(group) for group in groups])}"]
            if first.latencies
            else []
        ),
        *(f"{what}:\n{table(category_rows(group))}" for group in groups),
        f"the whole process, in {first.unit}:\n{table(_stage_rows(profiles))}",
        *([f"kernels:\n{table(evidence)}"] if evidence else []),
    ]


def _stage_rows(profiles: Sequence[CpuProfile]) -> list[dict[str, Any]]:
    names = [name for name, _ in profiles[0].stages]
    rows: list[dict[str, Any]] = [
        {"stage": name, **{profile.title: dict(profile.stages)[name] for profile in profiles}}
        for name in names
    ]
    return [*rows, {"stage": "sum", **{profile.title: profile.whole for profile in profiles}}]

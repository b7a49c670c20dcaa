# SPDX-License-Identifier: Apache-2.0
"""A run record for the terminal: pure functions of the record, the output arrays and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from report.errors import UsageError
from report.record import Check, Metric, RunRecord, Tensor, agreement

_PREVIEW = 8


def to_text(record: RunRecord, outputs: Sequence[np.ndarray], labels: Sequence[str], top: int) -> str:
    """Target, inputs, outputs (the `top` classes when `labels` fit), numbers, checks and the verdict."""
    target = record.target
    lines = [
        f"{target['model']} on {target['npu']}, {target['system_config']}, {target['memory_mode']}",
        line("platform", _platform(record)),
        *(line("input", f"{tensor_text(t)}: {record.provenance['input_source']}") for t in record.inputs),
    ]
    for tensor, array in zip(record.outputs, outputs, strict=True):
        lines += [line("output", tensor_text(tensor)), *values_lines(array, labels, top)]
    lines += _metrics(record.metrics)
    lines += checks_lines(record.checks)
    lines += [line("warning", warning) for warning in record.warnings]
    return "\n".join([*lines, verdict(record)])


def verdict(record: RunRecord) -> str:
    """The last line: ``output check: exact``, ``… close``, or why there is none."""
    if record.exit.code != 0:
        return f"output check: failed: {record.exit.reason}"
    passed = [c.detail for c in record.checks if c.kind == "comparison" and c.result == "pass"]
    return f"output check: {agreement(passed)}"


def line(key: str, text: str) -> str:
    """``key        text``."""
    return f"{key:<10} {text}"


def _platform(record: RunRecord) -> str:
    details = ", ".join(v for k, v in record.platform.items() if k != "kind" and "sha256" not in k)
    return f"{record.platform['kind']}{': ' if details else ''}{details}"


def tensor_text(tensor: Tensor) -> str:
    """``name dtype[shape]``."""
    return f"{tensor.name} {tensor.dtype}{list(tensor.shape)}"


def values_lines(array: np.ndarray, labels: Sequence[str], top: int) -> list[str]:
    """The `top` classes of an output that `labels` fit, else its first elements."""
    flat = array.reshape(-1)
    if labels and flat.size == len(labels):
        best = np.argsort(flat, kind="stable")[::-1][:top]
        return [line("", f"{rank}. {labels[i]:<16} {flat[i]:.6g}") for rank, i in enumerate(best, start=1)]
    shown = " ".join(f"{value:.6g}" for value in flat[:_PREVIEW])
    return [line("", f"{shown}{' …' if flat.size > _PREVIEW else ''}")]


def _metrics(metrics: Sequence[Metric]) -> list[str]:
    """One line for each origin, so that numbers of different nature never share one."""
    groups: dict[tuple[str, str, str], list[Metric]] = {}
    for metric in metrics:
        groups.setdefault((metric.nature, metric.source, metric.note), []).append(metric)
    lines = []
    for (nature, source, note), values in groups.items():
        known = ", ".join(f"{m.name} {m.value:,} {m.unit}" for m in values if m.value is not None)
        absent = ", ".join(m.name for m in values if m.value is None)
        text = known or f"n/a: {absent}"
        lines.append(line(nature, f"{text} ({source}{': ' if note else ''}{note})"))
    return lines


def checks_lines(checks: Sequence[Check]) -> list[str]:
    """Evidence that passed in one line, everything else in a line of its own."""
    passed = [c.name for c in checks if c.kind == "evidence" and c.result == "pass"]
    lines = [line("evidence", ", ".join(passed))] if passed else []
    others = [c for c in checks if c.kind != "evidence" or c.result != "pass"]
    return lines + [line("check", f"{c.name}: {c.result}: {c.detail}") for c in others]


def read_labels(path: Path | None) -> list[str]:
    """Class names, one a line; [] without a file.

    Raises:
        UsageError: the file cannot be read.
    """
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("cannot read the labels", where=str(path), why=str(error)) from error

# SPDX-License-Identifier: Apache-2.0
"""A run record for the terminal: pure functions of the record, the output arrays and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from report.errors import UsageError
from report.record import Check, Metric, RunRecord, Tensor

_PREVIEW = 8


def to_text(record: RunRecord, outputs: Sequence[np.ndarray], labels: Sequence[str], top: int) -> str:
    """Target, inputs, outputs (the `top` classes when `labels` fit), counters, checks and the verdict."""
    target = record.target
    lines = [
        f"{target['model']} on {target['npu']}, {target['system_config']}, {target['memory_mode']}",
        f"platform {_platform(record)}",
        *(f"input    {_tensor(t)}: {record.provenance['input_source']}" for t in record.inputs),
    ]
    for tensor, array in zip(record.outputs, outputs, strict=True):
        lines += [f"output   {_tensor(tensor)}", *_values(array, labels, top)]
    lines += [f"counter  {_metric(m)}" for m in record.metrics]
    lines += [f"check    {_check(c)}" for c in record.checks]
    lines += [f"warning  {warning}" for warning in record.warnings]
    return "\n".join([*lines, verdict(record)])


def verdict(record: RunRecord) -> str:
    """The last line: ``output check: exact``, ``… close``, or why there is none."""
    if record.exit.code != 0:
        return f"output check: failed: {record.exit.reason}"
    passed = [check for check in record.checks if check.result == "pass"]
    return "output check: " + ("exact" if all(c.detail.startswith("exact") for c in passed) else "close")


def _platform(record: RunRecord) -> str:
    details = ", ".join(f"{k} {v}" for k, v in record.platform.items() if k != "kind" and "sha256" not in k)
    return f"{record.platform['kind']}{': ' if details else ''}{details}"


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.name} {tensor.dtype}{list(tensor.shape)}"


def _values(array: np.ndarray, labels: Sequence[str], top: int) -> list[str]:
    flat = array.reshape(-1)
    if labels and flat.size == len(labels):
        best = np.argsort(flat, kind="stable")[::-1][:top]
        return [f"  {rank}. {labels[i]} {flat[i]:.6g}" for rank, i in enumerate(best, start=1)]
    shown = " ".join(f"{value:.6g}" for value in flat[:_PREVIEW])
    return [f"  {shown}{' …' if flat.size > _PREVIEW else ''}"]


def _metric(metric: Metric) -> str:
    value = "n/a" if metric.value is None else f"{metric.value:,} {metric.unit}"
    note = f" ({metric.note})" if metric.note else ""
    return f"{metric.name}: {value}, {metric.nature} by {metric.source}{note}"


def _check(check: Check) -> str:
    return f"{check.name}: {check.result}: {check.detail}"


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

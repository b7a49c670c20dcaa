# SPDX-License-Identifier: Apache-2.0
"""The quick set on three NPUs: every accepted test exact, verdicts as published.

The suite runs in a process of its own, whose `conformance` is tosa-tools' package of that name.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance import sets

ROOT = Path(__file__).parents[2]


def run_suite(folder: Path, *options: str) -> dict:
    """Summary of a run, which must end well."""
    report = folder / "summary.json"
    command = [sys.executable, "-m", "tests.conformance.run", *options]
    command += ["--out", str(folder / "work"), "--json", str(report)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return json.loads(report.read_text())


@pytest.mark.skipif(
    not (sets.LISTS / "quick.json").exists(),
    reason="the published list quick.json is not beside the repository",
)
def test_quick_set(tmp_path: Path) -> None:
    summary = run_suite(tmp_path, "--set", "quick")
    assert summary["tests"] == 175
    assert summary["totals"] == {
        "ethos-u55-128": {"exact": 109, "rejected": 66},
        "ethos-u65-256": {"exact": 109, "rejected": 66},
        "ethos-u85-256": {"exact": 175},
    }

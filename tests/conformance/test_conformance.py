# SPDX-License-Identifier: Apache-2.0
"""The quick set on three NPUs: every accepted test exact, verdicts as published.

The suite runs in a process of its own, whose `conformance` is tosa-tools' package of that name.
"""

from __future__ import annotations

import json
import os
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


@pytest.mark.parametrize(
    ("test", "npu", "passes"),
    [
        ("A/add/add_12x4_i32", "ethos-u85-256", True),
        ("A/add/add_12x4_i32", "ethos-u55-128", True),
        ("A/equal/equal_7_i32", "ethos-u55-128", False),
    ],
)
def test_official_runner(test: str, npu: str, passes: bool, tmp_path: Path) -> None:
    """tosa-tools' runner judges our results with tosa_verify; what Vela refuses is a failure there."""
    folder = sets.Maker(tmp_path).folder(test)
    module = "tests.conformance.npusut"
    command = [
        str(Path(sys.executable).with_name("tosa_verif_run_tests")),
        "-r",
        "--no-color",
        "-t",
        str(folder),
    ]
    command += ["--sut-module", module, "--sut-module-args", f"{module}:{npu}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert f"{module}): {int(passes)} expected_pass" in done.stdout, done.stdout + done.stderr


def test_an_unknown_name_is_not_made(tmp_path: Path) -> None:
    assert sets.Maker(tmp_path).folder("A/add/add_12x4_f99") is None


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.conformance.run", "--set", "quick", "--lists", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 3
    assert "use --lists or --seed" in done.stderr

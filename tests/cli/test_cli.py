# SPDX-License-Identifier: Apache-2.0
"""The program as a user meets it: help, unknown words, where output goes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from armdeploy.main import VERBS, main
from npu.config import CONFIGS
from report.cortex_a import TARGETS

ROOT = Path(__file__).parents[2]


def run(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "armdeploy.main", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


def test_help_names_every_verb_and_exit_code(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    text = capsys.readouterr().out
    assert caught.value.code == 0
    assert all(verb in text for verb in VERBS) and "130 interrupted" in text


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help_with_the_exit_codes(verb: str) -> None:
    result = run(verb, "--help")
    assert result.returncode == 0 and "exit codes" in result.stdout and result.stderr == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "required: VERB"),
        (["rum"], "invalid choice: 'rum'"),
        (["doctor", "--jsn"], "did you mean --json?"),
        (["run", "--plattform", "host"], "did you mean --platform?"),
        (["run", "--pte", "absent.pte"], "No such file"),
        (
            ["run", "--platform", "board", "--pte", "tests/data/two_conv_u85_256.pte"],
            "unknown platform 'board'",
        ),
        (
            ["run", "--pte", "tests/data/two_conv_u85_256.pte", "-t", "ethos-u55-64"],
            "built for ethos-u85-256",
        ),
        (["run", "--timeout", "0"], "must be positive"),
    ],
)
def test_bad_usage_is_one_line_on_stderr_and_exit_2(words: list[str], message: str) -> None:
    result = run(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr and result.stderr.count("\n") == 1


def test_targets_lists_npus_and_cpus(capsys: pytest.CaptureFixture) -> None:
    assert main(["targets", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["target"] for row in rows] == [*CONFIGS, *TARGETS]
    platforms = {row["target"]: set(row["platforms"]) for row in rows}
    assert all({"virtual", "host"} <= platforms[name] for name in CONFIGS)
    on_cpus = {"aarch64-native", "aarch64-emulated", "ssh", "adb"}
    assert all(on_cpus == platforms[name] for name in TARGETS)

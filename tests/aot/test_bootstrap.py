# SPDX-License-Identifier: Apache-2.0
"""A script started in a fresh clone: sets up once, starts again in .venv, and never loops."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aot import _bootstrap

_SETUP = """#!/bin/sh
echo set up >> "$(dirname "$0")/setup.log"
mkdir -p "$(dirname "$0")/.venv/bin"
ln -sf {python} "$(dirname "$0")/.venv/bin/python"
exit {code}
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone that has the bootstrap, a script that wants a module nobody has, and no .venv."""
    (tmp_path / "aot").mkdir()
    shutil.copy(_bootstrap.__file__, tmp_path / "aot")
    (tmp_path / "script.py").write_text(
        "import sys\nfrom aot._bootstrap import ensure\nensure((sys.argv[1],))\nprint('ran', *sys.argv[2:])\n"
    )
    return tmp_path


def _setup(clone: Path, code: int = 0) -> None:
    (clone / "setup.sh").write_text(_SETUP.format(python=sys.executable, code=code))
    (clone / "setup.sh").chmod(0o755)


def _run(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "ARMDEPLOY_BOOTSTRAPPED"}
    command = [sys.executable, "script.py", *arguments]
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, timeout=60)


def test_nothing_happens_when_all_is_there(clone: Path) -> None:
    _setup(clone)
    assert _run(clone, "json", "a b").stdout == "ran a b\n"
    assert not (clone / "setup.log").exists()


def test_sets_up_once_and_gives_up_when_that_did_not_help(clone: Path) -> None:
    _setup(clone)
    result = _run(clone, "module_of_nobody")
    assert (result.returncode, result.stdout) == (3, "")
    assert (clone / "setup.log").read_text() == "set up\n"
    assert "module_of_nobody" in result.stderr.splitlines()[-1]


def test_failed_set_up_ends_with_its_exit_code(clone: Path) -> None:
    _setup(clone, code=3)
    assert _run(clone, "module_of_nobody").returncode == 3


def test_without_set_up_says_what_to_install(clone: Path) -> None:
    result = _run(clone, "module_of_nobody")
    assert result.returncode == 3
    assert 'pip install "executorch[ethos-u]==1.5.1"' in result.stderr

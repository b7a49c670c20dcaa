# SPDX-License-Identifier: Apache-2.0
"""setup.sh --enable-fvps with a stand-in for curl: the licence, the check sum, the installer's arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "setup.sh"
INSTALLER = """#!/bin/sh
echo "$0 $*" >>"$RECORD"
while [ "$1" != --destination ]; do shift; done
mkdir -p "$2/models"
"""
CURL = """#!/bin/sh
while [ "$1" != --output ]; do shift; done
cp "$PACKAGE" "$2"
echo "$3" >>"$RECORD"
"""


def setup(folder: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, messages and record of a run that stops before Python packages are installed."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    (bin_folder / "curl").write_text(CURL)
    (bin_folder / "curl").chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    given = {"PATH": path, "ARMDEPLOY_TOOLS": str(folder / "tools"), "RECORD": str(folder / "record")}
    command = [str(SETUP), "--enable-fvps", "--python", "/bin/false", *arguments]
    done = subprocess.run(command, env=given | environment, capture_output=True, text=True)
    record = folder / "record"
    return done.returncode, done.stderr, record.read_text() if record.exists() else ""


def test_licence_comes_first(tmp_path: Path) -> None:
    code, said, record = setup(tmp_path)
    assert code == 3 and "--i-agree-to-the-contained-eula" in said and not record


def test_file_with_another_check_sum_is_refused(tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk")
    arguments = ["--i-agree-to-the-contained-eula"]
    code, said, record = setup(tmp_path, *arguments, PACKAGE=str(tmp_path / "junk"))
    assert code == 3 and "is not the file that Arm published" in said
    assert record.startswith("https://developer.arm.com/") and "Corstone-300/FVP_Corstone_SSE-300" in record


@pytest.mark.parametrize("agreed", [("--i-agree-to-the-contained-eula",), ()])
def test_installers_run_with_the_licence_accepted(tmp_path: Path, agreed: tuple[str, ...]) -> None:
    """md5sum is replaced as well: Arm's files cannot be here."""
    for board in (300, 320):
        script = tmp_path / f"FVP_Corstone_SSE-{board}.sh"
        script.write_text(INSTALLER)
        script.chmod(0o755)
    names = [f"FVP_Corstone_SSE-{board}.sh" for board in (300, 320)]
    subprocess.run(["tar", "-czf", "package.tgz", *names], cwd=tmp_path, check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "md5sum").symlink_to("/bin/true")
    variable = "ARM_FVP_INSTALL_I_AGREE_TO_THE_CONTAINED_EULA"
    given = {"PACKAGE": str(tmp_path / "package.tgz")} | ({} if agreed else {variable: "True"})
    code, said, record = setup(tmp_path, *agreed, **given)
    lines = record.splitlines()
    assert code == 3 and "/bin/false is not Python" in said  # the FVPs were done before that
    assert [line.split()[0].rsplit("/", 1)[1] for line in lines[1::2]] == names
    assert all("--i-agree-to-the-contained-eula --no-interactive" in line for line in lines[1::2])
    assert (tmp_path / "tools" / "fvp" / "corstone-320" / "models").is_dir()
    before = record
    _, said, record = setup(tmp_path, *agreed, **given)
    assert "the Corstone-300 FVP is there" in said and record == before

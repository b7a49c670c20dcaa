# SPDX-License-Identifier: Apache-2.0
"""The Ethos-U driver and delegate on the host under sanitizers: no byte of a program makes them leave it."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from board_runs import PROGRAMS, ROOT

from npu.config import npu_config

HERE = Path(__file__).resolve().parent
BUILD = ROOT / ".pytest_cache" / "board_host"

pytestmark = pytest.mark.skipif(
    any(shutil.which(program) is None for program in ("cmake", "ninja", "flatc", "g++")),
    reason="cmake, ninja, flatc or g++ is not installed (setup.sh)",
)


@pytest.fixture(scope="module")
def delegate_flips() -> Path:
    """The sanitised program of tests/runtime/board_host."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = ["-G", "Ninja", f"-DARMDEPLOY_PYTHON={sys.executable}"]
        for command in (
            ["cmake", "-S", HERE / "board_host", "-B", BUILD, *options],
            ["ninja", "-C", BUILD, "delegate_flips"],
        ):
            subprocess.run(command, check=True, capture_output=True)
    return BUILD / "delegate_flips"


@pytest.mark.parametrize(
    ("name", "npu"),
    [
        ("two_u55_128", "ethos-u55-128"),
        ("two_u65_256", "ethos-u65-256"),
        ("two_u85_256", "ethos-u85-256"),
        ("two_u85_256_direct", "ethos-u85-256"),
        ("two_u85_256_external", "ethos-u85-256"),
    ],
)
def test_no_changed_byte_leads_out_of_the_program(delegate_flips, name, npu):
    config = npu_config(npu)
    path = PROGRAMS / f"{name}.pte"
    command = [delegate_flips, path, hex(config.config_word), hex(config.id_word)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    ran, refused = map(int, re.findall(r"\d+", done.stdout))
    assert ran + refused == (path.stat().st_size + 15) // 16 * 16
    assert min(ran, refused) > 1000, "both kinds of change have to occur"


def test_program_for_another_npu_does_not_run(delegate_flips):
    config = npu_config("ethos-u85-512")
    path = PROGRAMS / "two_u85_256.pte"
    command = [delegate_flips, path, hex(config.config_word), hex(config.id_word)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "the program itself does not run\n")

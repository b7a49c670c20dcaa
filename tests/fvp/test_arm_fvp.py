# SPDX-License-Identifier: Apache-2.0
"""The platform for Arm's FVPs, with the open front ends behind a program that answers as an FVP does."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from fvp.arm import log, programs
from fvp.arm.platform import ArmFvp
from fvp.frontend.models import MODELS
from fvp.platforms import choose
from fvp.virtual import runner_build, tools
from npu.config import Family
from report.errors import EnvironmentError_, PlatformTimeout, RunFailed, UsageError
from tests.fvp.guest import needs_qemu
from tests.fvp.test_virtual_run import job

BIN = Path(__file__).parents[2] / "fvp" / "bin"
VERSION = "Fast Models [11.27.25 (Oct 17 2024)]"
PROGRAM = "FVP_Corstone_SSE-320"
STAND_IN = """#!/bin/sh
[ "$1" = --version ] && {{ printf '\\n{version}\\nCopyright 2000-2024 ARM Limited.\\n'; exit 0; }}
exec {program} "$@"
"""

needs_runner = pytest.mark.skipif(
    runner_build.missing_tools() is not None, reason="no cross compiler (setup.sh)"
)


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.ROOT_VARIABLE, raising=False)


def install(folder: Path, version: str = VERSION, name: str = PROGRAM) -> Path:
    """A program that calls itself an FVP of some version and works as the front end does."""
    place = folder / "models" / "Linux64_GCC-9.3"
    place.mkdir(parents=True, exist_ok=True)
    program = place / name
    program.write_text(STAND_IN.format(version=version, program=BIN / name))
    program.chmod(0o755)
    return program


def test_front_ends_on_the_path_are_not_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    assert programs.find(Family.U85) is None and programs.find(Family.U55) is None
    assert "no Arm FVP on PATH" in str(ArmFvp.available())
    program = programs.identify(BIN / PROGRAM, MODELS[PROGRAM])
    assert program is not None and program.open_platform and "not Arm's FVP" in program.version


def test_fvp_is_found_below_the_root_and_behind_a_front_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = install(tmp_path)
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{installed.parent}{os.pathsep}{os.environ['PATH']}")
    found = programs.find(Family.U85)
    assert found is not None and found.path == installed and found.version == VERSION
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert programs.find(Family.U85) is None
    monkeypatch.setenv(programs.ROOT_VARIABLE, str(tmp_path))
    assert programs.find(Family.U85) == found and not found.open_platform
    assert programs.find(Family.U55) is None


def test_program_that_does_not_say_what_it_is_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(programs.ROOT_VARIABLE, str(tmp_path))
    install(tmp_path, version="Something else 1.0")
    assert programs.find(Family.U85) is None
    install(tmp_path).write_text("no program")
    assert programs.find(Family.U85) is None


@needs_qemu
@needs_runner
@pytest.mark.parametrize("stem", ["layouts_u85_256", "mixed_u55_128"])
def test_run_gives_the_outputs_and_says_which_program_made_them(
    stem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = PROGRAM if "u85" in stem else "FVP_Corstone_SSE-300_Ethos-U55"
    installed = install(tmp_path, name=name)
    monkeypatch.setenv(programs.ROOT_VARIABLE, str(tmp_path))
    request, expected = job(stem)
    platform, warning = choose("fvp", request.target)
    outcome = platform.run(request)
    assert not warning and all(
        actual.dtype == wanted.dtype and (actual == wanted).all()
        for actual, wanted in zip(outcome.outputs, expected, strict=True)
    )
    assert outcome.provenance["simulator"] == f"{name}: {VERSION}"
    assert len(outcome.provenance["simulator_sha256"]) == 64 and installed.exists()
    assert {check.name for check in outcome.checks if check.passed} >= {
        "exit status",
        "end marker",
        "npu faults",
    }


@needs_qemu
@needs_runner
def test_front_end_in_its_place_is_named_and_counts_nothing() -> None:
    request, _ = job("layouts_u85_256")
    stand_in = programs.identify(BIN / PROGRAM, MODELS[PROGRAM])
    outcome = ArmFvp(stand_in).run(request)
    assert "open virtual platform" in outcome.provenance["simulator"]
    assert set(outcome.counters.values()) <= {None} and "stands in" in outcome.counters_note


@needs_qemu
@needs_runner
def test_time_limit_wrong_npu_and_missing_fvp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request, _ = job("layouts_u85_256")
    with pytest.raises(EnvironmentError_, match="no Arm FVP for ethos-u85-256"):
        ArmFvp().run(request)
    with pytest.raises(EnvironmentError_, match="no Arm FVP"):
        choose("fvp", request.target)
    slow = install(tmp_path)
    monkeypatch.setenv(programs.ROOT_VARIABLE, str(tmp_path))
    with pytest.raises(RunFailed, match="built for ethos-u85-256") as failed:
        ArmFvp().run(dataclasses.replace(request, target="ethos-u85-512"))
    assert "[executorch:arm_executor_runner]" in failed.value.log
    slow.write_text(STAND_IN.format(version=VERSION, program="sleep 60 #"))
    monkeypatch.setattr("fvp.arm.platform._GRACE_SECONDS", 0.5)
    with pytest.raises(PlatformTimeout, match=r"no result within 0\.5 s"):
        ArmFvp().run(dataclasses.replace(request, timeout=0.5))


@needs_runner
def test_command_line_that_an_fvp_would_cut_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path)
    monkeypatch.setenv(programs.ROOT_VARIABLE, str(tmp_path))
    request, _ = job("layouts_u85_256", run_id="x" * 300)
    with pytest.raises(UsageError, match="an FVP takes 256"):
        ArmFvp().run(request)


def test_absence_is_no_warning_but_presence_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tools.find_qemu() is None or runner_build.missing_tools():
        pytest.skip("no other platform can run here")
    platform, warning = choose("auto", "ethos-u85-256")
    assert (platform.name, warning) == ("virtual", "")
    install(tmp_path)
    monkeypatch.setenv(programs.ROOT_VARIABLE, str(tmp_path))
    assert choose("auto", "ethos-u85-256")[0].name == "fvp"
    assert choose("auto", "ethos-u85-256", "mlek")[0].name == "virtual"


STATISTICS = """
Info: Simulation is stopping. Reason: Cycle limit has been exceeded.

Info: /OSCI/SystemC: Simulation stopped by user.
[warning ][main@0][29797177 ns] Simulation stopped by user

--- FVP_MPS3_Corstone_SSE_300 statistics: -------------------------------------
Simulated time                          : 0.512973s
User time                               : 185.000000s
Wall time                               : 186.247928s
Performance index                       : 0.00
FVP_MPS3_Corstone_SSE_300.cpu0          :   0.03 MIPS (     5735052 Inst)
Memory highwater mark                   : 0x11935000 bytes ( 0.275 GB )
"""


def test_output_of_an_fvp_is_read() -> None:
    assert log.parse(STATISTICS) == log.Simulation(
        "Cycle limit has been exceeded", 0.512973, 186.247928, 5735052
    )
    assert log.parse("I [executorch] Wall time : 3s\n") == log.Simulation("", None, None, None)

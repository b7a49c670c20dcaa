# SPDX-License-Identifier: Apache-2.0
"""Firmware that faults: the handler's report, decoded, and the exit status.

Not among them, for QEMU's user mode cannot show them: a division by zero (it gives 0, as without the trap)
and a branch to Arm state (the handler would have to be entered in Thumb state again).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import board_runs
import pytest
from board_runs import ROOT, needs_runner

pytestmark = needs_runner

BOARD = "corstone-320"
SOURCES = ("console", "exit_status", "fault", "semihosting", "startup")


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/runtime/board_faults.cpp with the runner's platform."""
    folder = tmp_path_factory.mktemp("faults")
    tool, board = ROOT / "cmake/tools/board.py", ROOT / f"cmake/boards/{BOARD}.json"
    pools = ["--file-pool=64", "--method-pool=64", "--temp-pool=64", "--fast-pool=64", "--stack=0x1000"]
    options = ["--board", board, "--output", folder, "--memory-mode=Sram_Only", *pools]
    subprocess.run(["python3", tool, *options], check=True)
    output = folder / "faults"
    sources = [ROOT / "runtime/platform" / f"{name}.cpp" for name in SOURCES]
    sources += [ROOT / "runtime/core/error.cpp", ROOT / "runtime/core/format.cpp"]
    flags = (
        "-std=c++17 -Os -g -mcpu=cortex-m55 -mthumb -mfloat-abi=hard -fno-exceptions -fno-rtti -nostartfiles"
    )
    defines = ["-DARMDEPLOY_SEMIHOSTING=1", "-DARMDEPLOY_ENABLE_CACHES=0", f"-I{ROOT}", f"-I{folder}"]
    command = [
        "arm-none-eabi-g++",
        *flags.split(),
        *defines,
        *sources,
        ROOT / "tests/runtime/board_faults.cpp",
    ]
    subprocess.run([*command, f"-T{folder}/linker.ld", "--specs=nano.specs", "-o", output], check=True)
    return output


@pytest.mark.parametrize(
    ("what", "cause", "details"),
    [
        ("read", "bus fault at a data access", ["the address is 44440008", "CFSR 00008200", "BFAR 44440008"]),
        ("write", "bus fault at a data access", ["the address is 44440010"]),
        ("undefined", "undefined instruction", ["CFSR 00010000"]),
        ("branch", "bus fault at an instruction fetch", ["CFSR 00000100"]),
        ("interrupt", "unexpected exception", []),
    ],
)
def test_fault_is_decoded_and_ends_the_run(firmware, what, cause, details, tmp_path):
    run = board_runs.execute(firmware, BOARD, "ethos-u85-256", tmp_path, what)
    assert run.status == 1, run.log
    assert re.search(
        rf"^E \[executorch:arm_executor_runner\] Hard fault: {cause} at pc [0-9a-f]{{8}}$", run.log, re.M
    )
    for detail in details:
        assert detail in run.log
    registers = re.search(r"sp ([0-9a-f]{8}) lr [0-9a-f]{8} pc [0-9a-f]{8} xpsr", run.log)
    assert registers and 0x3000_7000 < int(registers[1], 16) <= 0x3000_8000
    assert "nothing happened" not in run.log


def test_firmware_without_a_fault_ends_well(firmware, tmp_path):
    run = board_runs.execute(firmware, BOARD, "ethos-u85-256", tmp_path, "nothing")
    assert (run.status, "nothing happened" in run.log) == (0, True)

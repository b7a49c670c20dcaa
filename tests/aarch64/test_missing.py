# SPDX-License-Identifier: Apache-2.0
"""Without an emulator that is new enough, a cross compiler, or libraries of the right release: doctor and run
say which one, and what to do, and end with exit code 3."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from armdeploy.main import main
from fvp.aarch64 import tools

PROGRAM = Path(__file__).parent.parent / "data/aarch64/two_conv_fp16_xnnpack_cortex-a-sme2.pte"
GOOD = "qemu-aarch64 version 11.1.3"


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where everything seems to be there; tests take one piece away."""
    tools_folder, programs = tmp_path / "tools", tmp_path / "bin"
    (tools_folder / "executorch-aarch64" / f"executorch-{tools.EXECUTORCH}.dist-info").mkdir(parents=True)
    programs.mkdir()
    for name in ("cmake", "ninja", tools.COMPILER, "qemu-aarch64"):
        told = GOOD if name == "qemu-aarch64" else f"{name} 12.2"
        write_program(programs / name, told)
    for name in ("setpriv", "sh"):
        (programs / name).symlink_to(shutil.which(name) or f"no {name}")
    monkeypatch.setenv("ARMDEPLOY_TOOLS", str(tools_folder))
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(programs / "qemu-aarch64"))
    monkeypatch.setenv("PATH", str(programs))
    return tmp_path


def write_program(path: Path, told: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{told}'\n", encoding="utf-8")
    path.chmod(0o755)


def old_emulator(machine: Path) -> None:
    write_program(machine / "bin/qemu-aarch64", "qemu-aarch64 version 10.0.9")


def no_emulator(machine: Path) -> None:
    (machine / "bin/qemu-aarch64").unlink()


def no_compiler(machine: Path) -> None:
    (machine / "bin" / tools.COMPILER).unlink()


def other_wheel(machine: Path) -> None:
    folder = machine / "tools/executorch-aarch64"
    (folder / f"executorch-{tools.EXECUTORCH}.dist-info").rename(folder / "executorch-1.4.0.dist-info")


def no_wheel(machine: Path) -> None:
    shutil.rmtree(machine / "tools/executorch-aarch64")


@pytest.mark.parametrize(
    ("take", "piece", "said"),
    [
        (old_emulator, "qemu-aarch64", "is QEMU 10.0.9, at least 10.1 is needed"),
        (no_emulator, "qemu-aarch64", "no qemu-aarch64 at"),
        (no_compiler, tools.COMPILER, f"{tools.COMPILER} not installed"),
        (other_wheel, "executorch for AArch64", "the AArch64 wheel is 1.4.0"),
        (no_wheel, "executorch for AArch64", "AArch64 wheel is not unpacked"),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(
    whole: Path, capsys: pytest.CaptureFixture, take, piece: str, said: str
) -> None:
    take(whole)
    assert main(["run", "--pte", str(PROGRAM), "--target", "cortex-a-sme2"]) == 3
    told = capsys.readouterr().err
    assert said in told and tools.SETUP in told and told.count("\n") == 1
    assert main(["doctor", "--target", "cortex-a"]) == 3
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{piece}: ")]
    assert "disables run --target cortex-a" in line and tools.SETUP in line


def test_a_machine_with_everything_passes_doctor(whole: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["doctor", "--target", "cortex-a"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert {row.split()[-1] for row in rows if row.startswith((tools.COMPILER, "qemu-aarch64"))} == {
        "required"
    }

# SPDX-License-Identifier: Apache-2.0
"""Vela 5.0.0 as the published FVP figures were made with, in a virtual environment of its own."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from npu.container import VelaBin, load_raw_npz

_VERSION = "5.0.0"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Setting:
    """Vela's system configuration and memory mode, and the firmware's timing profile, of an NPU."""

    system_config: str
    memory_mode: str


SETTINGS = {
    **dict.fromkeys(
        ("u55-32", "u55-64", "u55-128", "u55-256"), Setting("Ethos_U55_High_End_Embedded", "Shared_Sram")
    ),
    **dict.fromkeys(("u65-256", "u65-512"), Setting("Ethos_U65_High_End", "Dedicated_Sram")),
    **dict.fromkeys(("u85-128", "u85-256"), Setting("Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram")),
    "u85-512": Setting("Ethos_U85_SYS_DRAM_Mid_512", "Dedicated_Sram"),
    "u85-1024": Setting("Ethos_U85_SYS_DRAM_Mid_1024", "Dedicated_Sram"),
    "u85-2048": Setting("Ethos_U85_SYS_DRAM_High_2048", "Dedicated_Sram"),
}


class Vela:
    """The compiler with a cache of its results.

    Args:
        cache: folder; also holds the environment unless `executable` is given.
    """

    def __init__(self, cache: Path, executable: Path | None = None):
        self._cache = cache
        cache.mkdir(parents=True, exist_ok=True)
        self._executable = executable

    def compile(self, model: Path, npu: str) -> tuple[VelaBin, int]:
        """The compiled network and Vela's own estimate of its cycles."""
        stem = self._cache / f"{npu}__{model.stem}"
        result, summary = stem.with_suffix(".npz"), stem.with_suffix(".csv")
        if not (result.exists() and summary.exists()):
            self._run(model, npu, result, summary)
        with summary.open(newline="") as file:
            total = next(csv.DictReader(file))["cycles_total"]
        return load_raw_npz(result), round(float(total))

    def _run(self, model: Path, npu: str, result: Path, summary: Path) -> None:
        setting = SETTINGS[npu]
        with tempfile.TemporaryDirectory() as folder:
            command = [
                *(str(self._tool()), str(model), "--accelerator-config", f"ethos-{npu}"),
                *("--optimise", "Performance", "--config", str(DATA / "fvp" / "default_vela.ini")),
                *("--system-config", setting.system_config, "--memory-mode", setting.memory_mode),
                *("--output-format", "raw", "--output-dir", folder),
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            shutil.move(next(Path(folder).glob("*.npz")), result)
            shutil.move(next(Path(folder).glob("*summary*.csv")), summary)

    def _tool(self) -> Path:
        if self._executable is None:
            environment = self._cache / "vela"
            self._executable = environment / "bin" / "vela"
            if not self._executable.exists():
                subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
                pip = [str(environment / "bin" / "pip"), "install", "-q", f"ethos-u-vela=={_VERSION}"]
                subprocess.run(pip, check=True)
        return self._executable

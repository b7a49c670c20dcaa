# SPDX-License-Identifier: Apache-2.0
"""Compile a .tosa or .tflite file with Vela's own program, for inspection and verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aot.vela_config import VelaSettings
from npu.config import NpuConfig
from npu.container import VelaBin, load_raw_npz
from report.errors import CompileError, RunFailed
from report.forked import forked
from report.quiet import quiet

SUFFIXES = (".tosa", ".tflite")


@dataclass(frozen=True)
class CompiledFile:
    """Vela's raw result, and its debug database."""

    network: VelaBin
    result: Path
    debug_database: Path


def compile_file(model: Path, target: NpuConfig, settings: VelaSettings, folder: Path) -> CompiledFile:
    """Compile the whole of `model` to one command stream; Vela's files go to `folder`.

    Raises:
        CompileError: Vela refuses it, or leaves a part of it to the CPU.
    """
    from ethosu.vela import vela  # once, here: each child would import it anew

    arguments = [
        str(model),
        f"--accelerator-config={target.name}",
        f"--config={settings.ini_path}",
        f"--system-config={settings.system_config}",
        f"--memory-mode={settings.memory_mode}",
        "--output-format=raw",
        "--enable-debug-db",
        f"--output-dir={folder}",
    ]
    refusal = f"Vela refuses {model.name} for {target.name}"
    try:
        printed = forked(lambda: _run(vela.main, arguments, refusal), "vela")
    except RunFailed as error:  # a damaged file brings its readers down
        raise CompileError(refusal, where="vela", why=error.one_line()) from error
    result = folder / f"{model.stem}_vela.npz"
    if not result.is_file():
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        why = next((line for line in lines if "rror" in line), "an operator stays on the CPU")
        raise CompileError(f"Vela makes no single network of {model.name}", where="vela", why=why)
    return CompiledFile(load_raw_npz(result), result, folder / f"{model.stem}_debug.xml")


def _run(main: Callable[[list[str]], object], arguments: list[str], refusal: str) -> str:
    """What Vela's program `main` prints.

    Raises:
        CompileError: it fails; `refusal` says what, Vela why.
    """
    try:
        with quiet() as printed:
            main(arguments)
    except (Exception, SystemExit) as error:  # Vela ends the process when it dislikes an argument
        raise CompileError(refusal, where="vela", why=str(error)) from error
    return printed.text

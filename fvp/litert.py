# SPDX-License-Identifier: Apache-2.0
"""The numeric oracle of a .tflite: LiteRT's reference kernels, in an environment of their own.

LiteRT 1.2.0 and this project pin different NumPy releases, so the interpreter is another process.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fvp.virtual.tools import tools_dir
from report.errors import EnvironmentError_, RunFailed

VERSION = "1.2.0"
VARIABLE = "ARMDEPLOY_LITERT"
_SECONDS = 600.0

InputSets = Sequence[Sequence[np.ndarray]]
"""Sets of inputs of one model, arrays in the model's order."""


def python() -> Path | None:
    """Python of the environment with LiteRT: ``$ARMDEPLOY_LITERT``, or what setup made; None without one."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else tools_dir() / "litert" / "bin" / "python"
    return path if path.exists() else None


def outputs(jobs: Mapping[Path, InputSets], folder: Path) -> dict[Path, list[list[np.ndarray]]]:
    """Outputs of LiteRT's reference kernels, for each model and each of its sets of inputs.

    Args:
        folder: for the arrays on their way.

    Raises:
        EnvironmentError_: no environment with LiteRT.
        RunFailed: LiteRT refuses a model, or takes too long.
    """
    interpreter = python()
    if interpreter is None:
        raise EnvironmentError_(
            f"ai-edge-litert {VERSION} is not installed",
            where="verify",
            why="it is the reference for .tflite models",
            hint="run ./setup.sh --enable-litert",
        )
    work = [_job(model, sets, folder / f"litert-{n}") for n, (model, sets) in enumerate(jobs.items())]
    path = folder / "litert-jobs.json"
    path.write_text(json.dumps(work), encoding="utf-8")
    _interpret([str(interpreter), "-I", str(Path(__file__).with_name("litert_worker.py")), str(path)])
    return {
        model: [_load(Path(name)) for name in job["outputs"]] for model, job in zip(jobs, work, strict=True)
    }


def _interpret(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunFailed("LiteRT takes too long", where="litert", why=f"more than {_SECONDS:g} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RunFailed("LiteRT cannot run the model", where="litert", why=last)


def _job(model: Path, sets: InputSets, folder: Path) -> dict[str, list[str] | str]:
    folder.mkdir(parents=True, exist_ok=True)
    sources, targets = ([str(folder / f"{kind}-{n}.npz") for n in range(len(sets))] for kind in ("in", "out"))
    for path, arrays in zip(sources, sets, strict=True):
        np.savez(path, **{str(n): array for n, array in enumerate(arrays)})
    return {"model": str(model.resolve()), "inputs": sources, "outputs": targets}


def _load(path: Path) -> list[np.ndarray]:
    with np.load(path) as arrays:
        return [arrays[str(n)] for n in range(len(arrays.files))]

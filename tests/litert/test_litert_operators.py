# SPDX-License-Identifier: Apache-2.0
"""Seeded one-operator models: what Vela accepts equals LiteRT's reference kernels, byte for byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from fvp import litert
from npu.container import VelaBin
from report.errors import CompileError
from tests.litert import tflite_models

pytestmark = pytest.mark.skipif(litert.python() is None, reason=tflite_models.NO_INTERPRETER)

NPUS = ("ethos-u55-128", "ethos-u85-256")
SEED = 1
ACCEPTED = {"ethos-u55-128": 100, "ethos-u85-256": 101}
INPUT_SEEDS = (0, 1, 2)


def accepted(model: Path, npu: str, folder: Path) -> VelaBin | None:
    try:
        return tflite_models.compiled(model, npu, folder)
    except CompileError:
        return None


def wrong(got: list[list[np.ndarray]], want: list[list[np.ndarray]]) -> int:
    pairs = [
        (a, b) for ours, theirs in zip(got, want, strict=True) for a, b in zip(ours, theirs, strict=True)
    ]
    return sum(a.tobytes() != b.tobytes() for a, b in pairs)


def test_operators(tmp_path: Path) -> None:
    script = Path(__file__).with_name("operators.py")
    command = [str(litert.python()), str(script), str(tmp_path / "models"), str(SEED)]
    subprocess.run(command, check=True)
    models = sorted((tmp_path / "models").iterdir())
    jobs = {model: tflite_models.input_sets(model, INPUT_SEEDS) for model in models}
    expected = litert.outputs(jobs, tmp_path)
    different, taken = [], dict.fromkeys(NPUS, 0)
    for npu in NPUS:
        for model in models:
            network = accepted(model, npu, tmp_path / npu)
            if network is not None:
                taken[npu] += 1
                if wrong(tflite_models.npu_outputs(network, npu, jobs[model]), expected[model]):
                    different.append(f"{model.stem} {npu}")
    assert different == []
    assert taken == ACCEPTED

# SPDX-License-Identifier: Apache-2.0
"""Twelve public int8 models: every output byte equals LiteRT's reference kernels, on five NPUs.

The expected digests are recorded (tests/litert/record.py); where LiteRT's environment is there, they are
checked against it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fvp import litert
from tests.litert import record, tflite_models

pytestmark = pytest.mark.skipif(
    not tflite_models.MODELS.exists(), reason="no tflite models beside the repository"
)

RECORDED = json.loads(record.EXPECTED.read_text())["models"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return record.prepared(tmp_path_factory.mktemp("tflite"))


def test_every_model_is_recorded() -> None:
    assert {path.stem for path in tflite_models.MODELS.glob("*.tflite")} == set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_equals_litert(name: str, models: dict[str, Path], tmp_path: Path) -> None:
    model = models[name]
    inputs = record.model_inputs(model)
    for npu in tflite_models.NPUS:
        network = tflite_models.compiled(model, npu, tmp_path / npu)
        outputs = tflite_models.npu_outputs(network, npu, inputs)
        assert record.digests(outputs) == RECORDED[name], npu


@pytest.mark.skipif(litert.python() is None, reason=tflite_models.NO_INTERPRETER)
def test_records_are_litert_s(models: dict[str, Path], tmp_path: Path) -> None:
    jobs = {path: record.model_inputs(path) for path in models.values()}
    outputs = litert.outputs(jobs, tmp_path)
    assert {name: record.digests(outputs[path]) for name, path in models.items()} == RECORDED

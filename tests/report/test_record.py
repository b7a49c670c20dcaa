# SPDX-License-Identifier: Apache-2.0
"""The run record: its schema, and numbers that cannot go without nature or reason."""

from __future__ import annotations

import json

import jsonschema
import pytest

from report.record import NATURES, SCHEMA_PATH, Check, Exit, Metric, Op, RunRecord, Tensor

TARGET = {
    "npu": "ethos-u85-256",
    "macs": 256,
    "cpu": "cortex-m85",
    "system_config": "s",
    "memory_mode": "m",
    "board": "b",
    "model": "x",
}


def record(**changes: object) -> RunRecord:
    tensor = Tensor("x", (1, 2), "int8", "0" * 64)
    fields = {
        "status": "ok",
        "exit": Exit(0),
        "target": TARGET,
        "platform": {"kind": "host", "version": "1"},
        "inputs": (tensor,),
        "outputs": (tensor,),
        "checks": (Check("output", "pass", "exact"),),
        "metrics": (Metric("npu_active", None, "cycles", "simulated", "npu model", "no timing model"),),
        "ops": (Op(0, "aten::add.out", "kernel", "cpu"),),
    }
    return RunRecord(**{**fields, **changes})


def validate(document: dict) -> None:
    jsonschema.Draft202012Validator(json.loads(SCHEMA_PATH.read_text())).validate(document)


def test_a_record_fits_its_schema() -> None:
    validate(json.loads(record().to_json()))


@pytest.mark.parametrize("key", ["run_id", "status", "checks", "schema_version"])
def test_the_schema_misses_a_missing_key(key: str) -> None:
    document = json.loads(record().to_json())
    del document[key]
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def test_the_schema_refuses_an_unknown_status() -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate(json.loads(record(status="fine").to_json()))


def test_the_schema_knows_the_same_natures() -> None:
    schema = json.loads(SCHEMA_PATH.read_text())
    assert schema["properties"]["metrics"]["items"]["properties"]["nature"]["enum"] == list(NATURES)


def test_a_number_without_a_nature_is_refused() -> None:
    with pytest.raises(ValueError, match="nature"):
        Metric("cycles", 1, "cycles", "guessed", "somewhere")


def test_not_available_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="reason"):
        Metric("cycles", None, "cycles", "simulated", "npu model")


def test_every_run_has_its_own_id() -> None:
    assert record().run_id != record().run_id

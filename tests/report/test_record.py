# SPDX-License-Identifier: Apache-2.0
"""The run record: its schema, and numbers that cannot go without nature or reason."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report import comparison, comparison_html, comparison_text, gate, runs
from report.errors import UsageError
from report.record import NATURES, SCHEMA_PATH, Check, Exit, Metric, Op, RunRecord, Tensor, read
from tests.report.records import cpu_record, npu_record

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot read the record"),
        ("[" * 100_000, "cannot read the record"),
        ('{"schema_version": NaN}', "NaN is no number of JSON"),
        ("[]", "no run record: schema version None, this tool reads 1"),
        ('{"schema_version": 7}', "schema version 7, this tool reads 1"),
        ('{"schema_version": 1}', "damaged run record: the record: '[a-z_]+' is a required property"),
    ],
)
def test_what_is_no_record(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=message):
        read(path)


@given(data=st.data())
def test_a_damaged_record_is_refused_or_readable(data: st.DataObject) -> None:
    """Whatever is put in a record's place: one line, or a comparison and gates without a fault."""
    document = json.loads(data.draw(st.sampled_from((npu_record(), cpu_record()))).to_json())
    place, key = data.draw(st.sampled_from(list(places(document))))
    values = st.sampled_from([None, -1, 10**30, 1.5, True, "", "x", [], [1], {}, {"a": None}])
    place[key] = data.draw(values)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.json")
        path.write_text(json.dumps(document))
        try:
            read_back = runs.read(path)
        except UsageError as error:
            assert "\n" not in error.one_line() and str(path) in error.one_line()
            return
        found = comparison.document(read_back, {"": 500})
        assert comparison_text.to_text(found) and comparison_html.to_html(found)
        subject = gate.read(path)
        gates = gate.check(subject, None if subject.run.failed else subject, {"ram_bytes": 1}, {})
        assert gate.to_junit(gate.document(subject, None, gates))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a document, as what holds it and its key there."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])

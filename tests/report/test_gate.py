# SPDX-License-Identifier: Apache-2.0
"""Gates: what grows or is unknown does not pass, what is no baseline is refused."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from report import gate
from report.errors import UsageError
from report.record import Check, Exit, Metric, Op, RunRecord
from tests.report.records import cpu_record, npu_record, provenance

TOPK = {"op": "aten::topk", "reason": "Vela has no such operator"}


def subject(record: RunRecord) -> gate.Subject:
    return gate.subject(json.loads(record.to_json()), "r.json")


def check(
    now: RunRecord,
    before: RunRecord | None = None,
    limits: dict[str, float] | None = None,
    tolerances: dict[str, float] | None = None,
) -> dict[str, gate.Gate]:
    old = subject(before) if before else None
    return {each.name: each for each in gate.check(subject(now), old, limits or {}, tolerances or {})}


def failing(gates: dict[str, gate.Gate]) -> list[str]:
    return [name for name, each in gates.items() if not each.passed]


def test_a_budget_is_the_largest_value() -> None:
    assert failing(check(npu_record(cycles=1000), limits={"npu_active": 1000})) == []
    found = check(
        npu_record(cycles=1001), limits={"npu_active": 1000, "ram_bytes": 119, "program_bytes": 4096}
    )
    assert failing(found) == ["npu_active budget", "ram_bytes budget"]
    assert found["npu_active budget"].detail == "1,001 cycles (simulated), at most 1,000 (+0.1 %)"
    assert found["ram_bytes budget"].detail == "120 bytes, at most 119 (+0.8 %)"


def test_unknown_passes_no_budget() -> None:
    found = check(npu_record(cycles=None), limits={"npu_active": 10**9})
    assert failing(found) == ["npu_active budget"]
    assert "n/a: it was switched off" in found["npu_active budget"].detail


def test_the_same_run_is_no_regression() -> None:
    for record in (npu_record(), cpu_record()):
        found = check(record, record)
        assert failing(found) == [] and len(found) > 3


def test_growth_is_a_regression_beyond_its_tolerance() -> None:
    before, now = npu_record(cycles=1000), npu_record(cycles=1020)
    assert failing(check(now, before)) == ["npu_active"]
    assert failing(check(now, before, tolerances={"": 2})) == []
    assert failing(check(now, before, tolerances={"": 5, "npu_active": 1})) == ["npu_active"]
    assert failing(check(before, now)) == []


def test_every_mode_of_a_cortex_a_is_watched() -> None:
    names = check(cpu_record(), cpu_record())
    assert {"instructions_sme2", "instructions_neon", "program_bytes", "cpu_operators"} <= set(names)
    assert "latency_sme2" not in names  # unknown before: nothing to hold against it


def test_a_number_that_is_gone_or_of_another_nature_is_a_regression() -> None:
    assert failing(check(npu_record(cycles=None), npu_record())) == ["npu_active"]
    assert failing(check(npu_record(metrics=()), npu_record())) == ["npu_active"]
    found = check(npu_record(cycles=10, nature="measured"), npu_record())
    assert failing(found) == ["npu_active"]
    assert "no comparison" in found["npu_active"].detail


def test_a_baseline_that_does_not_know_a_number_passes_none() -> None:
    assert failing(check(npu_record(), npu_record(cycles=None))) == ["npu_active"]
    assert failing(check(npu_record(), npu_record(metrics=()))) == ["npu_active"]
    found = check(npu_record(), npu_record(provenance=provenance(cpu_operators=None)))
    assert failing(found) == ["cpu_operators"]


def test_another_unit_is_no_comparison() -> None:
    kilo = (Metric("npu_active", 1, "kilocycles", "simulated", "virtual"),)
    assert failing(check(npu_record(metrics=kilo), npu_record())) == ["npu_active"]


def test_without_compile_reports_kernels_tell() -> None:
    made = provenance(cpu_operators=None)
    ops = (Op(0, "quantize", "kernel", "cpu"), Op(1, "aten::fmod.out", "kernel", "cpu"))
    found = check(npu_record(ops=ops, provenance=made), npu_record(provenance=made))
    assert failing(found) == ["cpu_kernels", "fallback"]
    assert found["fallback"].detail == "new on the CPU: aten::fmod.out"


def test_an_output_that_is_no_longer_exact_is_a_regression() -> None:
    near = npu_record(checks=(Check("output", "pass", "within 1e-3 of the host reference"),))
    assert failing(check(near, npu_record())) == ["output"]
    assert failing(check(npu_record(), near)) == failing(check(near, near)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"checks": ()},
        {"checks": (Check("output", "not run", "no reference"),)},
        {"checks": (Check("output", "pass", "exact"), Check("end marker", "fail", "none", "evidence"))},
        {"status": "wrong_output"},
    ],
)
def test_a_good_exit_code_alone_is_no_success(changes: dict[str, Any]) -> None:
    assert failing(check(npu_record(**changes), limits={"npu_active": 10**9})) == ["run"]


def test_a_new_fallback_is_named_with_its_reason() -> None:
    before, now = npu_record(), npu_record(provenance=provenance(cpu_operators=[TOPK]))
    found = check(now, before)
    assert failing(found) == ["cpu_operators", "fallback"]
    assert found["fallback"].detail == "new on the CPU: aten::topk: Vela has no such operator"
    other = npu_record(provenance=provenance(cpu_operators=[{"op": "aten::sort", "reason": "r"}]))
    assert failing(check(now, other)) == ["fallback"]  # as many as before, but another one
    assert failing(check(before, now)) == []


def test_a_failed_run_passes_nothing() -> None:
    failed = npu_record(cycles=1, status="timeout", exit=Exit(7, "no end"))
    assert failing(check(failed, npu_record(), limits={"npu_active": 5})) == ["run"]
    with pytest.raises(UsageError, match="no baseline: that run failed: no end"):
        check(npu_record(), failed)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"npu": "ethos-u85-256"}, "its target is ethos-u85-256, the run's ethos-u55-128"),
        ({"platform": {"kind": "fvp"}}, "its platform is fvp, the run's virtual, corstone-300"),
        (
            {"platform": {"kind": "virtual", "board": "corstone-300", "timing_adapter": "none"}},
            "its memory timing is none, the run's not told",
        ),
        ({"provenance": provenance(dtype="a16w8")}, "its dtype is a16w8, the run's int8"),
    ],
)
def test_what_is_no_baseline(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check(npu_record(), npu_record(**changes))


@pytest.mark.parametrize(("option", "given"), [("--max", "limits"), ("--tolerance", "tolerances")])
def test_unknown_names_are_refused(option: str, given: str) -> None:
    with pytest.raises(UsageError, match=f"{option}: no number 'npu_cycles'; known: npu_active"):
        check(npu_record(), **{given: {"npu_cycles": 1}})


def test_what_may_be_the_cause_is_said() -> None:
    made = provenance(model_sha256="d" * 64, tools={"ethos-u-vela": "5.0.0"})
    now, before = subject(npu_record()), subject(npu_record(provenance=made))
    found = gate.document(now, before, gate.check(now, before, {}, {}))
    assert found["passed"]
    assert found["remarks"] == ["the model has changed", "ethos-u-vela is 5.1.0, was 5.0.0"]
    assert "ethos-u-vela is 5.1.0, was 5.0.0" in gate.to_text(found)


def test_junit_has_a_case_for_each_gate() -> None:
    now = subject(npu_record(cycles=7))
    found = gate.document(now, None, gate.check(now, None, {"npu_active": 5, "ram_bytes": 500}, {}))
    suite = ElementTree.fromstring(gate.to_junit(found))
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    ElementTree.fromstring(gate.to_junit({**found, "model": "\x1b[31m\ud800"}))
    (failure,) = suite.iter("failure")
    assert failure.text == "7 cycles (simulated), at most 5 (+40.0 %)"
    assert [case.get("name") for case in suite] == ["run", "npu_active budget", "ram_bytes budget"]

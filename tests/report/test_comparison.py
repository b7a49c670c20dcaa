# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: only like is compared with like, failed runs have no numbers, n/a has a reason."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest

from report import comparison, comparison_html, comparison_text, runs
from report.errors import CompileError
from report.record import Exit, RunRecord
from tests.report.records import cpu_record, npu_record, provenance

VOID = {"meta", "br"}


def compare(*records: RunRecord, clocks: dict[str, float] | None = None) -> dict[str, Any]:
    found = [run for record in records for run in runs.runs_of(json.loads(record.to_json()), "r.json")]
    return comparison.document(comparison.distinct(found), clocks or {})


def groups(document: dict[str, Any]) -> dict[tuple[str, str], list[tuple[int, float | None, float | None]]]:
    return {
        (group["counter"], group["nature"]): [(r["run"], r["value"], r["ratio"]) for r in group["rows"]]
        for group in document["comparisons"]
    }


def test_like_is_compared_with_like_alone() -> None:
    found = compare(npu_record(), npu_record("ethos-u85-256", 250), cpu_record())
    assert groups(found) == {
        ("npu_active", "simulated"): [(1, 1000, 1.0), (2, 250, 0.25)],
        ("vela_cycles_total", "estimated"): [(1, 900, 1.0), (2, 900, 1.0)],
        ("instructions", "emulated-count"): [(3, 500, 1.0), (4, 2000, 4.0)],
    }
    assert [run["target"] for run in found["runs"]][2:] == ["cortex-a-sme2", "cortex-a-neon"]
    assert found["runs"][0]["ram_bytes"] == 120
    assert found["runs"][2]["ram_bytes"] is None and found["runs"][2]["ram_note"]
    assert "latency: n/a for runs 1, 2, 3, 4: no hardware ran it" in found["remarks"]


def test_a_measurement_is_no_simulation() -> None:
    found = compare(npu_record(), npu_record(cycles=990, nature="measured"))
    assert groups(found)["npu_active", "simulated"] == [(1, 1000, 1.0)]
    assert groups(found)["npu_active", "measured"] == [(2, 990, 1.0)]
    assert "latency: n/a for runs 1, 2: no hardware ran it" in found["remarks"]  # an FVP is none


def test_other_models_are_not_compared() -> None:
    other = npu_record(cycles=10, provenance=provenance(model_sha256="c" * 64))
    found = compare(npu_record(), other)
    rows = [g["rows"] for g in found["comparisons"] if g["counter"] == "npu_active"]
    assert [[row["ratio"] for row in each] for each in rows] == [[1.0], [1.0]]
    assert any("different models" in remark for remark in found["remarks"])


def test_a_failed_run_has_no_numbers_and_its_reason() -> None:
    failed = npu_record(cycles=1, status="wrong_output", exit=Exit(5, "output: 3 of 12 elements differ"))
    found = compare(npu_record(), failed)
    assert groups(found)["npu_active", "simulated"] == [(1, 1000, 1.0)]
    assert found["runs"][1]["failed"] and found["runs"][1]["output"] == "output: 3 of 12 elements differ"
    assert "failed: output: 3 of 12 elements differ" in comparison_text.to_text(found)
    assert 'class="bad">failed: output: 3 of 12' in comparison_html.to_html(found)


def test_a_target_that_does_not_compile_is_a_row() -> None:
    run = runs.failure("net", "ethos-u55-32", "int8", CompileError("too large", where="vela"))
    found = comparison.document([run], {})
    assert run.exit_code == 4 and not found["comparisons"]
    assert "failed: vela: too large" in comparison_text.to_text(found)


def test_unknown_is_not_nothing() -> None:
    found = compare(npu_record(cycles=None), npu_record("ethos-u85-256", 250))
    assert groups(found)["npu_active", "simulated"] == [(1, None, None), (2, 250, 1.0)]
    text = comparison_text.to_text(found)
    assert "n/a" in text and "it was switched off" in text


def test_a_clock_makes_cycles_time() -> None:
    clocks = {"": 1000.0, "ethos-u55-128": 500.0}
    found = compare(npu_record(), npu_record("ethos-u85-256", 250), cpu_record(), clocks=clocks)
    times = {(g["counter"], r["run"]): r["milliseconds"] for g in found["comparisons"] for r in g["rows"]}
    assert times["npu_active", 1] == pytest.approx(0.002)  # 1000 cycles of 2 ns
    assert times["npu_active", 2] == pytest.approx(0.00025)
    assert times["instructions", 3] is None  # a CPU's instructions have no clock
    assert "0.002 ms at 500 MHz" in comparison_text.to_text(found)


def test_what_limits_a_comparison_is_said() -> None:
    operator = {"op": "aten::topk", "reason": "Vela has no such operator"}
    made = provenance(cpu_operators=[operator, operator], tools={"ethos-u-vela": "5.0.0"})
    found = compare(npu_record(), npu_record(cycles=900, provenance=made))
    assert "made with different versions of ethos-u-vela: 5.0.0, 5.1.0" in found["remarks"]
    assert "NPU cycles do not contain what the CPU does: runs 1, 2: quantize" in found["remarks"]
    assert "run 2: on the CPU: aten::topk: Vela has no such operator" in comparison_text.to_text(found)


def test_a_model_that_is_known_by_name_alone_is_said_to_be() -> None:
    found = compare(npu_record(), npu_record(cycles=9, provenance=provenance(model_sha256=None)))
    assert any("that run 2 is of this model is told by its name alone" in text for text in found["remarks"])


def test_neon_is_told_once() -> None:
    found = compare(cpu_record(), cpu_record())
    assert [run["target"] for run in found["runs"]] == ["cortex-a-sme2", "cortex-a-neon"]


def test_published_figures_stay_apart() -> None:
    assert compare(npu_record())["published"] == []
    found = compare(cpu_record())
    assert found["published"]
    assert all(group["nature"] != "published" for group in found["comparisons"])


class Page(HTMLParser):
    """Open elements, and what a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attributes if name == "src" or tag == "link"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_fetches_nothing() -> None:
    warning = "<script>alert(1)</script> & more"
    html = comparison_html.to_html(compare(npu_record(warnings=(warning,)), cpu_record()))
    page = Page()
    page.feed(html)
    assert page.open == [] and page.fetched == []
    assert "<script" not in html and "&lt;script&gt;" in html
    assert "url(" not in html and "@import" not in html

# SPDX-License-Identifier: Apache-2.0
"""The tables of several runs, the published figures beside them, and the timeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from armdeploy.main import main
from report import cpu_study, published
from report.cortex_a import TARGETS
from report.cpu_profile import CpuProfile, OperatorCost, category_rows, from_json
from report.errors import UsageError
from tests.report.records import cpu_record

CONVOLUTION, TRANSPOSE = "Convolution (NHWC, PF16) IGEMM #1", "Transpose (ND, X16) #1"


def mode(isa: str, cost: int, **changes) -> CpuProfile:
    operators = (
        OperatorCost(CONVOLUTION, True, cost, start=5),
        OperatorCost(TRANSPOSE, True, 1000, start=5 + cost),
    )
    stages = (("first inference", cost + 2000), ("this inference", cost + 1010))
    return CpuProfile(TARGETS[f"cortex-a-{isa}"], "measured", operators, cost + 1010, stages, **changes)


def measured(threads: int, power: str, on: int, off: int) -> list[CpuProfile]:
    times = {"threads": threads, "power": power}
    return [
        mode("sme2", on, latencies=(on, on + 2, on + 4), **times),
        mode("neon", off, latencies=(off, off, off + 9), **times),
    ]


def write(path: Path, profiles: list[CpuProfile], **changes) -> Path:
    record = json.loads(cpu_record().to_json()) | {
        "platform": {"kind": "adb", "device": "a phone"},
        "provenance": {"dtype": "fp16"},
        "profile": {profile.key: profile.to_json() for profile in profiles},
        **changes,
    }
    record["target"]["model"] = "unet"
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


@pytest.fixture
def records(tmp_path: Path) -> list[Path]:
    both = [*measured(1, "default", 3_000_000, 12_000_000), *measured(4, "default", 2_000_000, 4_000_000)]
    return [
        write(tmp_path / "a.json", both),
        write(tmp_path / "b.json", measured(1, "pinned", 2_000_000, 10_000_000)),
    ]


def test_a_profile_is_read_as_it_was_written() -> None:
    profile = measured(4, "pinned", 5, 6)[0]
    assert from_json(json.loads(json.dumps(profile.to_json()))) == profile
    assert (profile.key, profile.title, profile.latency) == ("sme2_4threads", "SME2 x4", 7)


def test_latencies_by_cores_and_power_with_what_nobody_measured(
    records: list[Path], capsys: pytest.CaptureFixture
) -> None:
    assert main(["profile", "--study", *map(str, records), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["latency"]
    found = {(row["threads"], row["power"]): (row["off_ms"], row["on_ms"], row["speed_up"]) for row in rows}
    assert found[1, "default"] == (12.0, 3.000002, pytest.approx(4, rel=1e-5))
    assert found[1, "pinned"][2] == pytest.approx(5, rel=1e-5)
    assert found[4, "default"][0] == 4.0
    assert found[4, "pinned"] == (None, None, None)
    assert len(rows) == len(found) == 4


def test_categories_with_shares_in_one_unit(records: list[Path]) -> None:
    groups = [group for path in records for group in cpu_study.read(path)]
    document = cpu_study.study(groups)
    assert list(document["categories"]) == ["ns"]
    first = document["categories"]["ns"][0]
    assert (first["category"], first["off"], first["on"], first["off / on"]) == (
        "convolution",
        12_000_000,
        3_000_000,
        "4.00",
    )
    assert category_rows(groups[0].profiles)[0]["share SME2"] == first["share on"]
    text = cpu_study.to_text(document)
    assert "published, not measured here" in text and "not measured" in text


def test_counts_are_no_latency_and_stay_in_a_table_of_their_own(records: list[Path], tmp_path: Path) -> None:
    counted = [
        CpuProfile(p.target, "emulated-count", p.operators, p.inference, p.stages)
        for p in measured(1, "default", 3, 4)
    ]
    path = write(tmp_path / "c.json", counted, platform={"kind": "aarch64-emulated"})
    document = cpu_study.study([group for record in [*records, path] for group in cpu_study.read(record)])
    assert set(document["categories"]) == {"ns", "instructions"}
    assert all("emulated" not in str(row["where"]) for row in document["latency"])


def test_published_figures_keep_their_source_and_enter_no_ratio() -> None:
    (told,) = published.read()
    assert told["source"].startswith("https://") and told["title"] and told["device"]
    assert [row["speed_up"] for row in told["latency"]] == [1.83, 3.9, 1.08, None]  # as stated, none computed
    assert told["latency"][3]["off_ms"] == 374 and told["latency"][2]["off_ms"] is None


def test_the_timeline_has_a_lane_for_each_category(records: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    assert main(["profile", "--study", str(records[1]), "--perfetto", str(file)]) == 0
    events = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X" and event["pid"] == 0]
    assert [(e["name"], e["tid"], e["ts"], e["dur"]) for e in spans] == [
        ("inference", 0, 0, 2001.01),
        (CONVOLUTION, 1, 0.005, 2000.0),
        (TRANSPOSE, 4, 2000.005, 1.0),
    ]
    assert spans[1]["args"]["unit"] == "ns" and spans[1]["args"]["path"] == "PF16"


def test_a_failed_run_and_one_without_profile_enter_no_table(tmp_path: Path) -> None:
    failed = write(tmp_path / "f.json", measured(1, "default", 1, 2), exit={"code": 5, "reason": "wrong"})
    with pytest.raises(UsageError, match="a run without a good end: wrong"):
        cpu_study.read(failed)
    for profiles in ([], measured(1, "default", 1, 2)[:1]):
        with pytest.raises(UsageError, match="no run record of a Cortex-A: no cortex-a-neon in it"):
            cpu_study.read(write(tmp_path / "n.json", profiles))
    with pytest.raises(UsageError, match="cannot read the record"):
        cpu_study.read(tmp_path / "none.json")

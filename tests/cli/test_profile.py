# SPDX-License-Identifier: Apache-2.0
"""``armdeploy profile``: the figures add up, agree with the board's counters, and name their nature."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from armdeploy.main import main
from report.profile_text import bottleneck

DATA = Path(__file__).parents[1] / "data"
PROGRAMS = ("ds_cnn_u55_128.pte", "ds_cnn_u85_256.pte", "two_conv_u85_256.pte")


def profile(capsys: pytest.CaptureFixture, *words: str | Path) -> dict:
    assert main(["profile", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operations_add_up_to_the_total(capsys: pytest.CaptureFixture, name: str) -> None:
    document = profile(capsys, DATA / name)
    (network,) = document["networks"]
    assert document["nature"] == "simulated" and "FVP" in document["accuracy"]
    assert sum(o["cycles"] for o in network["operations"]) == network["cycles"] > 0
    assert sum(o["share"] for o in network["operations"]) == pytest.approx(1)
    assert sum(o["macs"] for o in network["operations"]) == network["macs"]
    assert 0 < network["utilisation"] < 1


def test_slower_memory_takes_longer(capsys: pytest.CaptureFixture) -> None:
    path = DATA / "ds_cnn_u85_256.pte"
    cycles = [
        profile(capsys, path, "--timing-adapter", name, "--memory_mode", "Dedicated_Sram")["networks"][0]
        for name in ("none", "executorch:Ethos_U85_SYS_DRAM_Low:Dedicated_Sram")
    ]
    assert cycles[0]["cycles"] < cycles[1]["cycles"]


def test_the_text_has_totals_bottleneck_and_operations(capsys: pytest.CaptureFixture) -> None:
    assert main(["profile", str(DATA / "ds_cnn_u55_128.pte"), "--clock", "250"]) == 0
    text = capsys.readouterr().out
    for part in ("ethos-u55-128", "simulated, mean error", "at 250 MHz", "bottleneck: ", "DEPTHWISE", "AXI0"):
        assert part in text


def test_the_bottleneck_is_what_bounds_most_cycles() -> None:
    def operation(number: int, bound: str, cycles: int) -> dict:
        return {"id": number, "name": "CONV", "bound": bound, "cycles": cycles, "share": cycles / 100}

    operations = [operation(0, "mac", 40), operation(1, "ifm", 35), operation(2, "ifm", 25)]
    said = bottleneck({"cycles": 100, "operations": operations})
    assert said == "bottleneck: reading the input bounds 60% of the cycles, most in operation 1 (CONV: 35%)"
    assert "computes nothing" in bottleneck({"cycles": 0, "operations": []})


def test_the_timeline_has_lanes_and_ends_with_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "trace.json"
    document = profile(capsys, DATA / "ds_cnn_u85_256.pte", "--perfetto", path, "--clock", "1")
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"operations", "DMA", "MAC array", "weight decoder"} <= names
    assert max(s["ts"] + s["dur"] for s in spans) == pytest.approx(document["networks"][0]["cycles"], abs=1)
    assert all(span["dur"] >= 0 for span in spans)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["absent.pte"], "No such file"),
        ([str(DATA / "ds_cnn_u85_256.pte"), "--timing-adapter", "fast"], "unknown timing profile 'fast'"),
        ([str(DATA / "ds_cnn_u85_256.pte"), "--memory_mode", "Sram"], "unknown memory mode 'Sram'"),
        ([str(DATA / "ds_cnn_u85_256.pte"), "--clock", "0"], "--clock must be positive"),
        ([str(DATA / "ds_cnn_u85_256.pte"), "--model", "ds_cnn"], "exclude each other"),
    ],
)
def test_bad_requests_are_one_line(capsys: pytest.CaptureFixture, words: list[str], told: str) -> None:
    assert main(["profile", *words]) == 2
    captured = capsys.readouterr()
    assert told in captured.err and captured.err.count("\n") == 1 and captured.out == ""

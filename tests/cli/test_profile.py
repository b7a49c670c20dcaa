# SPDX-License-Identifier: Apache-2.0
"""``armdeploy profile``: the figures add up, agree with the board's counters, and name their nature."""

from __future__ import annotations

import functools
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from aot.targets import FAMILIES
from armdeploy.main import main
from npu import stream, timing
from npu.config import npu_config
from npu.timing import document, roofline
from report.profile_text import bottleneck

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = DATA / "timing" / "examples.npz"
"""Driver payloads of the bundled models, compiled by ExecuTorch 1.5.1 with Vela 5.1.0; keys "MODEL__NPU"."""
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
    for part in ("ethos-u55-128", "simulated, ±", "at 250 MHz", "bottleneck: ", "DEPTHWISE", "AXI0"):
        assert part in text


def said_of(*operations: tuple[str, int, int, int]) -> str:
    """The sentence about operations of (bound, cycles, MAC cycles, bytes read through EXT)."""
    ports = {"EXT": {"total": 10.0, "each": 10.0}}
    network = {"cycles": sum(cycles for _, cycles, _, _ in operations), "roofline": {"ports": ports}}
    documents = []
    for number, (bound, cycles, mac, read) in enumerate(operations):
        traffic = {"EXT": {"bytes_read": read, "bytes_written": 0}}
        document = {"id": number, "name": "CONV", "bound": bound, "port": "EXT", "traffic": traffic}
        share = cycles / network["cycles"]
        documents.append(
            {**document, "cycles": cycles, "share": share, "mac_cycles": mac, "output_cycles": 0}
        )
    return bottleneck({**network, "operations": documents})


def test_the_bottleneck_is_what_bounds_most_cycles() -> None:
    """Streams through one port together, each kind with what the counters say of it."""
    assert said_of(("mac", 40, 30, 0), ("ifm", 35, 9, 350), ("weights", 25, 9, 100)) == (
        "bottleneck: traffic through EXT bounds 60% of the cycles, 75% of its bandwidth used in those, "
        "most in operation 1 (CONV, input: 35%)"
    )
    assert "traffic through EXT bounds 100% of the cycles, 20% of its" in said_of(("store", 50, 0, 100))
    assert "the MAC array bounds 80% of the cycles, active in 90% of those, most in operation 0 (CONV: " in (
        said_of(("mac", 80, 72, 0), ("latency", 20, 0, 0))
    )
    assert "bound 100% of the cycles, no unit active in more than 40%" in said_of(("latency", 50, 20, 0))
    assert "DMA that other work waits for bounds 100%" in said_of(("dma", 50, 0, 0))
    assert "computes nothing" in bottleneck({"cycles": 0, "operations": []})


@functools.cache
def examples() -> dict[str, timing.Timing]:
    """The bundled models on one NPU of each kind, as compiled and profiled by default."""
    found = {}
    with np.load(EXAMPLES, allow_pickle=False) as arrays:
        for key in arrays.files:
            config = npu_config(key.split("__")[1])
            family = FAMILIES[config.family]
            adapters = timing.profile_for(family.system_config, family.memory_mode)
            parsed = stream.parse(arrays[key].tobytes())
            found[key] = timing.estimate(parsed, config, adapters, timing.memory_map(family.memory_mode))
    return found


@pytest.mark.parametrize("npu", ["ethos-u55-128", "ethos-u85-256"])
def test_the_counters_support_the_bottleneck_of_every_example(npu: str) -> None:
    told = {key: found for key, found in examples().items() if key.endswith(npu)}
    assert len(told) == 8
    for key, found in told.items():
        said = bottleneck(document(found))
        share, busy = (int(word) / 100 for word in re.findall(r"(\d+)% of (?:the|those|its)", said)[:2])
        beats = {
            name: roofline(found).ports[name].cycles(port.bytes_read, port.bytes_written) / found.total
            for name, port in found.traffic.items()
        }
        if "the MAC array bounds" in said:
            assert found.mac_cycles / found.total >= share * busy - 0.01, key
            assert busy >= 0.5
        elif "the output stage bounds" in said:
            assert found.output_cycles / found.total >= share * busy - 0.01, key
            assert busy >= 0.5
        elif port := re.search(r"traffic through (\w+) bounds", said):
            assert beats[port[1]] >= share * busy - 0.01, key
        else:
            assert "latency, dependencies" in said and busy < 0.5, key


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


def trace_file(path: Path, document: dict, packed: bool) -> Path:
    """A trace in the FVP's format of a run in which operation n takes 100 + n cycles."""
    (network,) = document["networks"]
    first = network["stream"]["first_command"]
    cycle, events = 50, [{"ts": 50, "tid": "qread", "args": {"qread": 0}}]
    for number, operation in enumerate(network["operations"]):
        words = (operation["offset"] - first) // 4 + 1
        events.append({"ts": cycle, "tid": "qread", "args": {"qread": words}})
        cycle += 100 + number
    events += [{"ts": cycle, "tid": "qread", "args": {"qread": words + 1}}, {"ts": 0, "tid": "other"}]
    text = json.dumps({"traceEvents": events}).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_a_trace_of_an_fvp(tmp_path: Path, capsys: pytest.CaptureFixture, packed: bool) -> None:
    program = DATA / "ds_cnn_u85_256.pte"
    simulated = profile(capsys, program)
    trace = trace_file(tmp_path / "trace.json", simulated, packed)
    document = profile(capsys, program, "--pmu-trace", trace, "--perfetto", tmp_path / "timeline.json")
    (network,), (model,) = document["networks"], simulated["networks"]
    assert document["nature"] == "measured" and "FVP" in document["accuracy"]
    cycles = [operation["cycles"] for operation in network["operations"]]
    assert cycles == [100 + number for number in range(len(cycles))]
    assert network["cycles"] == sum(cycles)
    assert network["simulated_cycles"] == model["cycles"]
    assert {operation["bound"] for operation in network["operations"]} == {None}
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    assert main(["profile", str(program), "--pmu-trace", str(trace)]) == 0
    text = capsys.readouterr().out
    assert "measured, Arm's FVP" in text and "largest: operation" in text and "roofline" not in text


def test_a_trace_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    short = trace_file(tmp_path / "short.json", profile(capsys, DATA / "two_conv_u85_256.pte"), False)
    broken = tmp_path / "broken.json"
    broken.write_bytes(b"\x1f\x8b not gzip")
    for file, told in ((short, "of another network"), (broken, "cannot read the trace")):
        assert main(["profile", str(DATA / "ds_cnn_u85_256.pte"), "--pmu-trace", str(file)]) == 2
        captured = capsys.readouterr()
        assert told in captured.err and captured.err.count("\n") == 1


def test_the_roofline_is_in_text_and_data(capsys: pytest.CaptureFixture) -> None:
    (network,) = profile(capsys, DATA / "ds_cnn_u85_256.pte", "--timing-only")["networks"]
    roofs = network["roofline"]
    assert roofs["peak"] == 256 and set(roofs["ports"]) == {"SRAM", "EXT"}
    assert [p["number"] for p in roofs["points"]] == [o["id"] for o in network["operations"] if o["macs"]]
    assert main(["profile", str(DATA / "ds_cnn_u85_256.pte")]) == 0
    assert "roofline: 256 MACs a cycle at most; SRAM" in capsys.readouterr().out


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

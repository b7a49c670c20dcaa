# SPDX-License-Identifier: Apache-2.0
"""``armdeploy inspect``: what it says agrees with the machine that executes the file, and with Vela."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from armdeploy.main import main
from npu.config import npu_config
from npu.container import parse_velabin
from npu.machine import Npu, _regions
from npu.memory import ArrayMemory
from report import pte

DATA = Path(__file__).parents[1] / "data"
PROGRAMS = ("ds_cnn_u55_128.pte", "ds_cnn_u85_256.pte", "two_conv_u85_256.pte")


def inspect(capsys: pytest.CaptureFixture, path: Path, *options: str) -> dict:
    assert main(["inspect", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", PROGRAMS)
def test_operations_are_those_that_the_machine_executes(capsys: pytest.CaptureFixture, name: str) -> None:
    (network,) = inspect(capsys, DATA / name)["networks"]
    vela = parse_velabin(pte.load(DATA / name).method().delegates[0].blob)
    result = Npu(npu_config(network["target"])).run(vela.cmd_data, ArrayMemory(_regions(vela)))
    described = [(o["offset"], f"OP_{o['name']}", o["mode"] or "") for o in network["operations"]]
    assert described == [(o.offset, o.name, o.mode) for o in result.ops]
    executed = [o.macs for o in result.ops if o.name in ("OP_CONV", "OP_DEPTHWISE")]
    assert [o["macs"] for o in network["operations"] if o["name"] in ("CONV", "DEPTHWISE")] == executed


def test_every_byte_of_the_constants_is_read(capsys: pytest.CaptureFixture) -> None:
    (network,) = inspect(capsys, DATA / "two_conv_u85_256.pte")["networks"]
    (constants,) = (region for region in network["regions"] if region["holds"] == "constants")
    assert constants["bytes_read"] > 0 and constants["bytes"] <= constants["bytes_read"]


def test_commands_have_offset_words_and_fields(capsys: pytest.CaptureFixture) -> None:
    (network,) = inspect(capsys, DATA / "two_conv_u85_256.pte", "--commands")["networks"]
    commands = network["commands"]
    assert len(commands) == network["stream"]["commands"]
    assert commands[0]["offset"] == network["stream"]["first_command"]
    assert commands[-1]["name"] == "OP_STOP" and commands[-1]["fields"] == {"mask": 0xFFFF}


def test_the_text_names_memory_operations_and_instructions(capsys: pytest.CaptureFixture) -> None:
    assert main(["inspect", str(DATA / "ds_cnn_u55_128.pte")]) == 0
    text = capsys.readouterr().out
    for part in (
        "ethos-u55-128",
        "planned memory",
        "DEPTHWISE",
        "constants",
        "cortex_m::quantize_per_tensor",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not an ExecuTorch program"),
        (b"hello, this is a text file", "not an ExecuTorch program"),
        (b"PK\x03\x04 not a zip", "damaged Ethos-U network"),
        (b"\x00\x01\x00\x00TFL3" + bytes(40), "damaged TensorFlow Lite model"),
    ],
)
def test_another_file_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, content: bytes, told: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert main(["inspect", str(path)]) == 2
    captured = capsys.readouterr()
    assert told in captured.err and captured.err.count("\n") == 1 and captured.out == ""


@pytest.mark.parametrize("cut", [100, 2000, 20000, 34000])
def test_a_truncated_program_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture, cut: int
) -> None:
    path = tmp_path / "cut.pte"
    path.write_bytes((DATA / "ds_cnn_u85_256.pte").read_bytes()[:cut])
    assert main(["inspect", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_raw_vela_result_is_read(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    delegate = pte.load(DATA / "two_conv_u85_256.pte").method().delegates[0]
    vela = parse_velabin(delegate.blob)
    specs = {
        f"{side}_{key}": np.array(values)
        for side, tensors in (("input", vela.inputs), ("output", vela.outputs))
        for key, values in (
            ("shape", [t.shape for t in tensors]),
            ("elem_size", [t.elem_size for t in tensors]),
            ("offset", [t.offset for t in tensors]),
            ("region", [t.region for t in tensors]),
        )
    }
    path = tmp_path / "two_conv_vela.npz"
    np.savez(
        path,
        cmd_data=np.frombuffer(vela.cmd_data, np.uint8),
        weight_data=np.frombuffer(vela.weight_data, np.uint8),
        scratch_shape=np.array([vela.scratch_size]),
        **specs,
    )
    from_npz = inspect(capsys, path)["networks"]
    assert from_npz == inspect(capsys, DATA / "two_conv_u85_256.pte")["networks"]

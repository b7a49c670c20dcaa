# SPDX-License-Identifier: Apache-2.0
"""``armdeploy verify``: exact networks pass, a planted fault is found, named and located."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import flatbuffers
import numpy as np
import pytest

from aot import compile as aot_compile
from armdeploy.main import main
from fvp import litert
from fvp.bisect import bisect
from fvp.bundle_check import check_bundle
from fvp.host.executor import execute_method
from fvp.inputs import random_inputs
from fvp.network_check import check_network
from fvp.oracle import TosaOracle, seeded_inputs
from npu.config import NpuConfig, from_config_word, npu_config
from npu.container import VelaBin, parse_velabin
from npu.machine import Npu, _regions
from npu.memory import ArrayMemory
from npu.operation import Operation
from npu.stream import encode_all, parse
from npu.walk import walk
from npu.writer import last_writer
from report import flatschema, pte, vela_debug
from report.bundle import BundledCase
from report.errors import RunFailed
from report.forked import forked

LAST_CONVOLUTION = {"tosa_rescale_default_1", "tosa_transpose_default_1"}
"""Its result: a U85 stores it transposed, with no tensor between."""

MODELS = Path(__file__).parents[3] / "shared" / "data" / "tflite"


@pytest.fixture(params=["ethos-u85-256", "ethos-u65-512"])
def network(request: pytest.FixtureRequest, compiled: Path) -> tuple[VelaBin, TosaOracle]:
    """A compiled network and the oracle of its graph."""
    stem = f"two_conv_arm_delegate_{request.param}"
    delegate = pte.load(compiled / f"{stem}.pte").method().delegates[0]
    oracle = TosaOracle(compiled / f"{stem}_artifacts" / "delegate_0" / "out.tosa")
    return parse_velabin(delegate.blob), oracle


def test_a_compiled_network_is_exact(network: tuple[VelaBin, TosaOracle], tmp_path: Path) -> None:
    vela, oracle = network
    sets = [seeded_inputs(oracle.inputs, seed) for seed in range(4)]
    result = check_network(vela, oracle, sets, tmp_path)
    assert (result.cases, result.mismatches) == (4, ()) and result.elements == 4 * 8 * 14 * 14


def test_a_changed_bias_is_found_and_located(network: tuple[VelaBin, TosaOracle], tmp_path: Path) -> None:
    vela, oracle = network
    family = _config(vela).family
    damaged = bytearray(vela.weight_data)
    damaged[_last_scale(vela)] ^= 0x55
    changed = dataclasses.replace(vela, weight_data=bytes(damaged))
    result = check_network(changed, oracle, [seeded_inputs(oracle.inputs, 0)], tmp_path)
    (mismatch,) = result.mismatches
    index, spec = mismatch.difference.index, vela.outputs[0]
    address = spec.offset + int(np.ravel_multi_index(index, oracle.outputs[0].shape))
    step = last_writer(parse(vela.cmd_data), family, spec.region, address)
    assert step is not None and (mismatch.operation, mismatch.offset) == (
        step.command.name,
        step.command.offset,
    )
    assert mismatch.difference.actual != mismatch.difference.expected


def _config(vela: VelaBin) -> NpuConfig:
    return from_config_word(parse(vela.cmd_data).config_word)


def _last_scale(vela: VelaBin) -> int:
    """Offset in the constants of a byte of the last convolution's first bias."""
    stream = parse(vela.cmd_data)
    works = [s.work for s in walk(stream.commands, _config(vela).family)]
    convolutions = [w for w in works if isinstance(w, Operation) and w.command.name == "OP_CONV"]
    assert convolutions[-1].weights is not None
    base, _ = convolutions[-1].weights.scale_streams[0]
    region = convolutions[-1].weights.scale_region
    if region == 0:
        return base
    copies = [w for w in works if not isinstance(w, Operation) and w.destination.address == base]
    return copies[-1].source.address


def test_the_last_writer_is_the_operation_that_changes_the_byte(network: tuple[VelaBin, TosaOracle]) -> None:
    """The machine run up to and including an operation writes a byte that it does not write before."""
    vela, _ = network
    config = _config(vela)
    stream, spec = parse(vela.cmd_data), vela.outputs[0]
    for address in (spec.offset, spec.offset + spec.size // 2, spec.offset + spec.size - 1):
        step = last_writer(stream, config.family, spec.region, address)
        assert step is not None
        assert _writes(vela, step.command.offset, address, inclusive=True)
        assert not _writes(vela, step.command.offset, address, inclusive=False, after=True)


def _writes(vela: VelaBin, offset: int, address: int, *, inclusive: bool, after: bool = False) -> bool:
    """Whether the byte, filled with two patterns, is the same after the operations chosen."""
    stream = parse(vela.cmd_data)
    config = _config(vela)
    operations = [c for c in stream.commands if c.spec.is_operation and c.name != "OP_STOP"]
    kept = [
        c
        for c in stream.commands
        if c not in operations or (c.offset > offset if after else c.offset == offset and inclusive)
    ]
    values = []
    for pattern in (0x5A, 0xA5):
        regions = _regions(vela)
        regions[1][:] = 0
        regions[1][address] = pattern
        Npu(config).run_commands(encode_all(kept), ArrayMemory(regions))
        values.append(int(regions[1][address]))
    return values[0] == values[1]


def queue_of(compiled: Path, target: str) -> dict:
    folder = compiled / f"two_conv_arm_delegate_{target}_artifacts" / "delegate_0"
    return vela_debug.read(folder / "output" / "out_debug.xml")


def test_every_tensor_of_the_graph_is_equal_in_memory(
    network: tuple[VelaBin, TosaOracle], compiled: Path
) -> None:
    vela, oracle = network
    graph = compiled / "two_conv_arm_delegate_ethos-u85-256_artifacts" / "delegate_0" / "out.tosa"
    layers = bisect(
        vela, graph.read_bytes(), seeded_inputs(oracle.inputs, 0), queue_of(compiled, _config(vela).name)
    )
    compared = [layer.tensor for layer in layers if not layer.reason]
    assert set(compared) >= LAST_CONVOLUTION & {layer.tensor for layer in layers} and len(compared) >= 2
    assert all(layer.difference is None for layer in layers)


def test_bisection_names_the_first_layer_that_departs(
    network: tuple[VelaBin, TosaOracle], compiled: Path
) -> None:
    vela, oracle = network
    damaged = bytearray(vela.weight_data)
    damaged[_last_scale(vela)] ^= 0x55
    changed = dataclasses.replace(vela, weight_data=bytes(damaged))
    graph = compiled / "two_conv_arm_delegate_ethos-u85-256_artifacts" / "delegate_0" / "out.tosa"
    queue = queue_of(compiled, _config(vela).name)
    layers = bisect(changed, graph.read_bytes(), seeded_inputs(oracle.inputs, 0), queue)
    first = next(layer for layer in layers if layer.difference)
    assert first.source == "Conv2D" and first.tensor in LAST_CONVOLUTION


@pytest.mark.parametrize("words", [["--bisect"], ["--json", "--bisect"], []])
def test_a_program_is_compared_by_delegate(
    compiled: Path, capsys: pytest.CaptureFixture, words: list[str]
) -> None:
    program = compiled / "two_conv_arm_delegate_ethos-u65-512.pte"
    assert main(["verify", str(program), "--count", "1", *words]) == 0
    text = capsys.readouterr().out
    if "--json" in words:
        (file,) = json.loads(text)["files"]
        (found,) = file["networks"]
        assert found["result"] == "exact" and any(layer["text"] == "equal" for layer in found["layers"])
    else:
        assert "delegate 0: ethos-u65-512 against tosa_reference_model: 1 sets" in text
        assert ("tosa_transpose_default_1" in text) == ("--bisect" in words)


@pytest.mark.parametrize("words", [["--count", "2"], ["--count", "1", "--json"]])
def test_the_command_compiles_executes_and_compares(
    compiled: Path, capsys: pytest.CaptureFixture, words: list[str]
) -> None:
    graph = compiled / "two_conv_arm_delegate_ethos-u85-256_artifacts" / "delegate_0" / "out.tosa"
    assert main(["verify", str(graph), "-t", "ethos-u55-128", *words]) == 0
    text = capsys.readouterr().out
    if "--json" in words:
        assert [file["result"] for file in json.loads(text)["files"]] == ["exact"]
    else:
        assert "ethos-u55-128 against tosa_reference_model: 2 sets" in text and "verify: exact" in text


def test_float_and_quantised_are_compared_beside_the_device(
    compiled: Path, capsys: pytest.CaptureFixture
) -> None:
    program = compiled / "two_conv_arm_delegate_ethos-u85-256.pte"
    assert main(["verify", str(program), "--count", "1", "--bisect", "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    layers = file["quantization"]
    assert [layer["operator"] for layer in layers] == ["input", "relu.default", "conv2d.default"]
    assert [layer["device"] for layer in layers] == ["no tensor of its own", "equal", "equal"]
    assert all(20 < layer["sqnr_db"] < 60 and 0.999 < layer["cosine"] < 1 for layer in layers)
    assert [layer["module_path"] for layer in file["networks"][0]["layers"]][-1] == "second"
    assert main(["verify", str(program), "--count", "1", "--bisect"]) == 0
    text = capsys.readouterr().out
    assert "device: equal in all" in text and "quantisation: least at" in text


@pytest.mark.parametrize(("added", "code", "told"), [(0, 0, "exact"), (1, 0, "close"), (2, 5, "different")])
def test_bundled_outputs_are_compared_in_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture, added: int, code: int, told: str
) -> None:
    data = Path("tests/data/two_conv_u85_256.pte").read_bytes()
    program = pte.parse(data)
    inputs = random_inputs(program.method().tensors(program.method().inputs), 0)
    (output,) = execute_method(
        program.method(), program.named_data, inputs, npu_config("ethos-u85-256")
    ).outputs
    output = output.copy()
    (found,) = check_bundle(
        program, [BundledCase("forward", inputs, (output,))], npu_config("ethos-u85-256"), ""
    )
    assert found.result == "exact" and found.step is not None
    output.reshape(-1)[5] += added * found.step
    path = tmp_path / "m.bpte"
    path.write_bytes(bundled(data, inputs, [output]))
    assert main(["verify", str(path)]) == code
    text = capsys.readouterr().out
    if added:
        assert main(["verify", str(path), "--bundle-steps", str(added - 1)]) == 5
        assert main(["verify", str(path), "--bundle-steps", str(added)]) == 0
    assert f"output 0: {told}" in text and text.endswith(f"verify: {told}\n")


def bundled(program: bytes, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bytes:
    """A .bpte with one case, of float32 tensors."""
    schema = flatschema.classes(flatschema.BUNDLED_PROGRAM)
    case, suite, bundle = (
        getattr(schema, f"{name}T")()
        for name in ("BundledMethodTestCase", "BundledMethodTestSuite", "BundledProgram")
    )
    case.inputs, case.expectedOutputs = ([_value(schema, a) for a in side] for side in (inputs, outputs))
    suite.methodName, suite.testCases = "forward", [case]
    bundle.methodTestSuites, bundle.program = [suite], np.frombuffer(program, np.uint8)
    builder = flatbuffers.Builder()
    builder.Finish(bundle.Pack(builder), b"BP08")
    return bytes(builder.Output())


def _value(schema: ModuleType, array: np.ndarray) -> object:
    value, tensor = schema.ValueT(), schema.TensorT()
    tensor.scalarType, tensor.sizes = 6, list(array.shape)
    tensor.dimOrder, tensor.data = list(range(array.ndim)), np.frombuffer(array.tobytes(), np.uint8)
    value.valType, value.val = schema.ValueUnion.Tensor, tensor
    return value


def test_a_model_is_compiled_with_its_losses_measured(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """What a model name is turned into; the compilation is another test's."""
    asked = []

    def compiled_before(arguments: argparse.Namespace) -> list[tuple[Path, dict]]:
        asked.append((arguments.model, arguments.target, arguments.quantization_loss))
        return [(compiled / "two_conv_arm_delegate_ethos-u85-256.pte", {})]

    monkeypatch.setattr(aot_compile, "compile_models", compiled_before)
    assert main(["verify", "two_conv", "-t", "ethos-u85-256", "--count", "1", "--bisect"]) == 0
    assert asked == [("two_conv", ["ethos-u85-256"], True)]


def test_a_child_that_dies_is_a_failed_run() -> None:
    with pytest.raises(RunFailed, match="the oracle ended without a result: signal 9"):
        forked(lambda: os.kill(os.getpid(), signal.SIGKILL), "the oracle")
    with pytest.raises(RunFailed, match="too short"):
        forked(lambda: _refuse(), "the oracle")
    assert forked(lambda: [np.arange(3)], "the oracle")[0].tolist() == [0, 1, 2]


def _refuse() -> None:
    raise RunFailed("too short")


@pytest.mark.parametrize("length", [0, 3, 8, 20, 1000, -4])
@pytest.mark.parametrize("suffix", [".tosa", ".pte", ".bpte", ".tflite", ".npz"])
def test_a_truncated_file_is_one_line(
    compiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture, suffix: str, length: int
) -> None:
    folder = compiled / "two_conv_arm_delegate_ethos-u85-256_artifacts" / "delegate_0"
    program = compiled / "two_conv_arm_delegate_ethos-u85-256.pte"
    whole = {".tosa": folder / "out.tosa", ".tflite": MODELS / "kws_ref_model.tflite"}.get(suffix, program)
    if not whole.is_file():
        pytest.skip(f"{whole.name} is not here")
    path = tmp_path / f"short{suffix}"
    path.write_bytes(whole.read_bytes()[:length])
    words = ["--reference", str(folder / "out.tosa")] if suffix == ".npz" else []
    assert main(["verify", str(path), *words]) in (2, 4)
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and "internal error" not in captured.err and captured.out == ""


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["absent.tosa"], 2, "no such file"),
        (["model.onnx"], 2, "no reference for .onnx files"),
        (["README.md"], 2, "no reference for .md files"),
        (["tests/data/ds_cnn_u85_256.pte"], 2, "no compile report"),
        (["tests/data/ds_cnn_u85_256.pte", "-t", "ethos-u85"], 2, "--target is for files that are compiled"),
        (["no_such_model"], 2, "unknown model"),
        (["a.npz"], 2, "no reference"),
        ([], 2, "give either FILE or --model"),
        (["absent.npz", "--reference", "absent.tosa"], 2, "no such file"),
    ],
)
def test_bad_requests_are_one_line(
    capsys: pytest.CaptureFixture, words: list[str], code: int, told: str
) -> None:
    assert main(["verify", *words]) == code
    captured = capsys.readouterr()
    assert told in captured.err and captured.err.count("\n") == 1


@pytest.mark.skipif(litert.python() is None, reason=f"LiteRT {litert.VERSION} is not installed")
@pytest.mark.skipif(not MODELS.is_dir(), reason="the public .tflite models are not here")
def test_a_tflite_model_equals_litert(capsys: pytest.CaptureFixture) -> None:
    assert main(["verify", str(MODELS / "kws_ref_model.tflite"), "-t", "ethos-u55-128", "--count", "2"]) == 0
    assert "LiteRT 1.2.0, reference kernels: 2 sets" in capsys.readouterr().out

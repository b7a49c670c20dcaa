# SPDX-License-Identifier: Apache-2.0
"""The program as a whole: what it writes, what its report says, and what it refuses.

Oracle for the .pte: ExecuTorch's own aot_arm_compiler on the same model with the same options.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from aot import compile as aot_compile
from aot import lowering, pipeline
from aot.calibration import find_calibration
from aot.vela_config import resolve_settings
from armdeploy.main import main as armdeploy
from npu.config import npu_config
from npu.container import parse_velabin
from npu.stream import parse as parse_stream
from report import pte as pte_format

ROOT = Path(aot_compile.__file__).parent.parent
TARGETS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """two_conv compiled for three targets in one call; the folder, and how often each stage ran."""
    folder = tmp_path_factory.mktemp("many")
    counts = {"export": 0, "quantize": 0, "partition": 0, "finish": 0}
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((pipeline, "export"), (pipeline, "quantize"), (lowering, "partition")):
            patch.setattr(module, name, _counted(getattr(module, name), counts, name))
        patch.setattr(lowering, "finish", _counted(lowering.finish, counts, "finish"))
        arguments = ["-m", "two_conv", "-t", ",".join(TARGETS), "-o", str(folder)]
        assert aot_compile.main(arguments) == 0
    return folder, counts


def _counted(function: Callable[..., Any], counts: dict[str, int], name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        counts[name] += 1
        return function(*args, **kwargs)

    return call


def _load(folder: Path, target: str) -> dict[str, Any]:
    return json.loads((folder / f"two_conv_arm_delegate_{target}.report.json").read_text())


def test_targets_share_export_and_calibration(many: tuple[Path, dict[str, int]]) -> None:
    assert many[1] == {"export": 1, "quantize": 2, "partition": 2, "finish": 3}


@pytest.mark.parametrize("target", TARGETS)
def test_command_stream_is_for_the_target(many: tuple[Path, dict[str, int]], target: str) -> None:
    program = pte_format.load(many[0] / f"two_conv_arm_delegate_{target}.pte")
    (delegate,) = program.method().delegates
    assert delegate.compile_specs["target"] == target.encode()
    stream = parse_stream(parse_velabin(delegate.blob).cmd_data)
    assert stream.config_word & 0xF00000FF == npu_config(target).config_word & 0xF00000FF


@pytest.mark.parametrize("target", TARGETS)
def test_report_agrees_with_the_files(many: tuple[Path, dict[str, int]], target: str) -> None:
    folder, report = many[0], _load(many[0], target)
    data = (folder / report["pte"]["path"]).read_bytes()
    assert report["pte"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert report["pte"]["size"] == len(data)
    (delegate,) = report["delegates"]
    assert delegate["tosa_sha256"] == hashlib.sha256((folder / delegate["tosa"]).read_bytes()).hexdigest()
    blob = pte_format.parse(data).method().delegates[0].blob
    network = parse_velabin(blob)
    assert delegate["command_stream_bytes"] == len(network.cmd_data)
    assert delegate["weight_bytes"] == len(network.weight_data)
    assert delegate["scratch_bytes"] == network.scratch_size
    assert delegate["operators"] == {"aten::convolution": 2, "aten::relu": 1}
    assert report["memory"]["planned_bytes"] == list(pte_format.parse(data).method().planned_bytes)


@pytest.mark.parametrize("target", TARGETS)
def test_every_operation_is_traced_to_its_module_and_line(
    many: tuple[Path, dict[str, int]], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = many[0] / f"two_conv_arm_delegate_{target}.pte"
    assert armdeploy(["inspect", str(path), "--json"]) == 0
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    operations = [o for o in network["operations"] if o["name"] != "DMA_START"]
    assert operations and {o["tosa_operator"] for o in operations} >= {"Conv2D"}
    assert {o["module_path"] for o in operations} == {"first", "second"}
    assert {o["py_line"].split(":")[0] for o in operations} == {"two_conv.py"}


def test_report_lists_boundary_and_no_fallback(many: tuple[Path, dict[str, int]]) -> None:
    report = _load(many[0], "ethos-u85-256")
    assert report["cpu_ops"] == []
    first, last = report["boundary_ops"]
    assert (first["side"], first["kernel"]) == ("input", "cortex_m::quantize_per_tensor.out")
    assert (last["side"], last["kernel"]) == ("output", "cortex_m::dequantize_per_tensor.out")
    example = np.load(many[0] / report["inputs"][0]["example"])
    assert first["scale"] == pytest.approx((example.max() - example.min()) / 255, rel=0.05)
    assert -128 <= first["zero_point"] <= 127


def test_vela_figures_are_labelled_estimates(many: tuple[Path, dict[str, int]]) -> None:
    vela = _load(many[0], "ethos-u85-256")["delegates"][0]["vela"]
    assert {figure["nature"] for figure in vela.values()} == {"estimated"}
    assert vela["nn_macs"]["value"] == pytest.approx(168192, rel=0.05)


def test_report_records_defaults_and_tools(many: tuple[Path, dict[str, int]]) -> None:
    report = _load(many[0], "ethos-u65-512")
    assert (report["system_config"], report["memory_mode"]) == ("Ethos_U65_High_End", "Dedicated_Sram_384KB")
    assert report["tools"]["executorch"] == "1.5.1"
    assert report["tools"]["ethos-u-vela"] == "5.1.0"
    assert any("no calibration data" in warning for warning in report["warnings"])
    assert str(many[0]) not in json.dumps(report)


def test_compiling_again_alone_gives_the_same_bytes(
    many: tuple[Path, dict[str, int]], tmp_path: Path, compile_: Callable[..., Any]
) -> None:
    out = tmp_path / "with blank" / "other.pte"
    assert compile_("-m", "two_conv", "-t", "ethos-u65-512", "-o", out).code == 0
    together = many[0] / "two_conv_arm_delegate_ethos-u65-512.pte"
    assert out.read_bytes() == together.read_bytes()


def test_delegate_equals_that_of_executorchs_compiler(
    many: tuple[Path, dict[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from executorch.backends.arm.scripts import aot_arm_compiler

    model = str(ROOT / "examples" / "two_conv.py")
    arguments = ["-m", model, "-t", "ethos-u85-256", "-q", "-d", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["aot_arm_compiler", *arguments])
    aot_arm_compiler.main()
    theirs = pte_format.load(next(tmp_path.glob("*.pte"))).method()
    ours = pte_format.load(many[0] / "two_conv_arm_delegate_ethos-u85-256.pte").method()
    assert ours.delegates[0].blob == theirs.delegates[0].blob
    flags = "compile_flags"  # theirs also asks Vela for a verbose listing
    differing = {
        k for k, v in ours.delegates[0].compile_specs.items() if theirs.delegates[0].compile_specs[k] != v
    }
    assert differing == {flags}
    assert (ours.values, ours.instructions) == (theirs.values, theirs.instructions)
    assert ours.planned_bytes == theirs.planned_bytes


_FMOD_BETWEEN_CONVOLUTIONS = """\
import torch
from torch import nn

class Fmod(nn.Module):
    def forward(self, x):
        return torch.fmod(x, 0.5)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.f, self.b = nn.Conv2d(3, 4, 3), Fmod(), nn.Conv2d(4, 4, 3)

    def forward(self, x, *, y):
        return self.b(self.f(self.a(x))) + y

print("a model file may print")
torch.manual_seed(0)
ModelUnderTest = Model()
ModelInputs = (torch.randn(1, 3, 8, 8),)
ModelKwargs = {"y": torch.randn(1, 4, 4, 4)}
"""


def test_operators_on_the_cpu_have_path_reason_and_kernel(
    tmp_path: Path, compile_: Callable[..., Any]
) -> None:
    (tmp_path / "fmod.py").write_text(_FMOD_BETWEEN_CONVOLUTIONS)
    finished = compile_("-m", tmp_path / "fmod.py", "-t", "ethos-u85-256", "-o", tmp_path, "--json")
    (report,) = finished.reports
    (op,) = report["cpu_ops"]
    assert (op["op"], op["module_path"], op["kernel"]) == ("aten::fmod.Scalar", "f", "aten::fmod.Scalar_out")
    assert op["reason"].startswith("ExecuTorch's Arm backend does not lower this operator")
    assert len(report["delegates"]) == 2
    assert sorted(b["side"] for b in report["boundary_ops"]) == [
        "between",
        "between",
        "input",
        "input",
        "output",
    ]
    assert [d["outputs"][0]["dtype"] for d in report["delegates"]] == ["int8", "int8"]
    assert [(i["name"], i["shape"]) for i in report["inputs"]] == [("x", [1, 3, 8, 8]), ("y", [1, 4, 4, 4])]


def test_everything_on_request(tmp_path: Path, compile_: Callable[..., Any]) -> None:
    samples = tmp_path / "samples"
    samples.mkdir()
    for seed in range(3):
        torch.manual_seed(seed)
        torch.save(torch.randn(1, 3, 16, 16), samples / f"{seed}.pt")
    kept = tmp_path / "kept"
    finished = compile_(
        *("-m", "two_conv", "-t", "ethos-u55", "--dtype", "a16w8", "--calibration-data", samples),
        *("--bundleio", "--etrecord", "-i", kept, "-o", tmp_path, "--json", "--memory_mode", "Sram_Only"),
    )
    (report,) = finished.reports
    bundle = tmp_path / "two_conv_a16w8_arm_delegate_ethos-u55-128.bpte"
    assert bundle.read_bytes()[4:8] == b"BP08"
    assert (tmp_path / f"{bundle.stem}_etrecord.bin").stat().st_size > 0
    assert report["quantization"] == {
        "dtype": "a16w8",
        "calibration": {"source": "data", "samples": 3, "skipped": 0, "preprocessing": None},
        "layers": None,
    }
    assert not any("calibration" in warning for warning in report["warnings"])
    assert report["delegates"][0]["inputs"][0]["dtype"] == "int16"
    assert {p.name for p in kept.iterdir()} >= {"two_conv_exported_program.pt2", "partition_report.json"}
    assert (kept / "delegate_0" / "output" / "out_vela.npz").is_file()


def test_cpu_only_program_lists_every_operator(tmp_path: Path, compile_: Callable[..., Any]) -> None:
    finished = compile_("-m", "two_conv", "-t", "ethos-u55", "--no-delegate", "--no-quantize", "-o", tmp_path)
    assert finished.code == 0
    report = json.loads((tmp_path / "two_conv_arm_ethos-u55-128.report.json").read_text())
    assert report["delegates"] == []
    assert [op["kernel"] for op in report["cpu_ops"]] == [
        "aten::convolution.out",
        "aten::relu.out",
        "aten::convolution.out",
    ]


def test_scratch_beyond_the_boards_sram_is_a_warning(
    model_file: Callable[..., Path], tmp_path: Path, compile_: Callable[..., Any]
) -> None:
    path = model_file("self.c(x)", "torch.randn(1, 8, 384, 384)", "self.c = nn.Conv2d(8, 8, 1)")
    (report,) = compile_("-m", path, "-t", "ethos-u55-128", "-o", tmp_path, "--json").reports
    (warning,) = [w for w in report["warnings"] if "SRAM" in w]
    assert f"{report['delegates'][0]['scratch_bytes']:,}" in warning
    assert "2,097,152" in warning


def test_quantised_program_is_taken_as_it_is_for_both_profiles(
    tmp_path: Path, compile_: Callable[..., Any], many: tuple[Path, dict[str, int]]
) -> None:
    from aot.models import load_model
    from aot.options import Dtype
    from aot.quantize import export, quantize

    model = load_model("two_conv", None)
    spec = lowering.compile_spec(
        npu_config("ethos-u55"), resolve_settings(npu_config("ethos-u55"), None, None, None)
    )
    quantized = quantize(
        export(model, strict=True), model, find_calibration(None, model), spec, Dtype.INT8, strict=True
    )
    torch.export.save(quantized.program, tmp_path / "q.pt2")
    finished = compile_("-m", tmp_path / "q.pt2", "-t", "ethos-u55,ethos-u85", "-o", tmp_path, "--json")
    first, second = finished.reports
    assert first["quantization"] == {"dtype": "as given", "calibration": None, "layers": None}
    assert (first["cpu_ops"], second["cpu_ops"]) == ([], [])
    assert (
        first["delegates"][0]["blob_sha256"] == _load(many[0], "ethos-u55-128")["delegates"][0]["blob_sha256"]
    )
    assert (
        second["delegates"][0]["blob_sha256"]
        == _load(many[0], "ethos-u85-256")["delegates"][0]["blob_sha256"]
    )


def test_debug_mode_keeps_the_operator_mapping(tmp_path: Path, compile_: Callable[..., Any]) -> None:
    kept = tmp_path / "kept"
    finished = compile_(
        *("-m", "two_conv", "-t", "ethos-u85", "--enable-debug-mode", "json", "-i", kept, "-o", tmp_path)
    )
    assert finished.code == 0
    assert json.loads((kept / "debug.json").read_text())
    assert list((kept / "delegate_0" / "output").glob("*debug*"))


def test_unwritable_output_is_refused_before_work(tmp_path: Path, compile_: Callable[..., Any]) -> None:
    (tmp_path / "file").write_text("")
    finished = compile_("-m", "two_conv", "-o", tmp_path / "file" / "folder")
    assert finished.code == 2
    assert "cannot create" in finished.error


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-t", "ethos-u55-512"], 2, "unknown target 'ethos-u55-512'; this NPU comes as ethos-u55-32"),
        (["-t", "ethos-u55", "--system_config", "Ethos_U85_SYS_DRAM_Mid"], 2, "Ethos-U85, the target is"),
        (["-t", "ethos-u55", "--memory-mode", "Dedicated_Sram"], 2, "does not exist with"),
        (["--config", "gone.ini"], 2, "gone.ini"),
        (["--memory_mode", "Fast"], 2, "Memory_Mode.Fast"),
        (["--quantise"], 2, "did you mean --quantize?"),
        (["--dtype", "int4"], 2, "types: int8, a16w8"),
        (["-m", "ds_cn"], 2, "did you mean ds_cnn?"),
        (["--calibration_data", "x", "--no-quantize"], 2, "needs quantisation"),
        (["--calibration_data", "gone"], 2, "no such file or folder: gone"),
        (["--enable_debug_mode", "json"], 2, "add -i DIR"),
        (["-o", "x.bpte"], 2, "does not end in .pte"),
        (["-o", "x.pte", "--bundleio"], 2, "does not end in .bpte"),
        (["-o", "x.pte", "-t", "ethos-u55,ethos-u85"], 2, "one file for several targets"),
        (["--preprocess", "gamma=2"], 2, "unknown key 'gamma'"),
        (["--no_quantize"], 4, "integers only"),
    ],
)
def test_bad_request_is_one_line(
    arguments: list[str], code: int, message: str, compile_: Callable[..., Any]
) -> None:
    model = [] if "-m" in arguments else ["-m", "two_conv"]
    finished = compile_(*model, *arguments)
    assert (finished.code, finished.out) == (code, "")
    assert message in finished.error


def test_dynamic_dimension_is_named(tmp_path: Path, compile_: Callable[..., Any]) -> None:
    batch = torch.export.Dim("batch", min=1, max=8)
    program = torch.export.export(
        torch.nn.Conv2d(3, 4, 3), (torch.randn(2, 3, 8, 8),), dynamic_shapes=({0: batch},)
    )
    torch.export.save(program, tmp_path / "dynamic.pt2")
    finished = compile_("-m", tmp_path / "dynamic.pt2", "-o", tmp_path)
    assert finished.code == 4
    assert "input 'input' of dynamic is dynamic in dimension 0" in finished.error


def test_nothing_on_the_npu_is_a_failure_with_reasons(
    model_file: Callable[..., Path], tmp_path: Path, compile_: Callable[..., Any]
) -> None:
    path = model_file("torch.fmod(x, 0.5)", "torch.randn(1, 3, 8, 8)")
    finished = compile_("-m", path, "-o", tmp_path)
    assert finished.code == 4
    assert "no operator of the model can run on ethos-u85-256" in finished.error
    assert "aten::fmod.Scalar" in finished.err
    assert list(tmp_path.glob("*.pte")) == []


def test_operator_without_kernel_is_named(
    model_file: Callable[..., Path], tmp_path: Path, compile_: Callable[..., Any]
) -> None:
    path = model_file(
        "torch.ops.armdeploy_test.twice(self.c(x))", "torch.randn(1, 3, 8, 8)", "self.c = nn.Conv2d(3, 4, 3)"
    )
    custom = (
        "@torch.library.custom_op('armdeploy_test::twice', mutates_args=())\n"
        "def twice(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n\n"
        "@twice.register_fake\ndef _(x):\n    return torch.empty_like(x)\n\n"
    )
    path.write_text(path.read_text().replace("class Model", custom + "class Model"))
    finished = compile_("-m", path, "-o", tmp_path)
    assert finished.code == 4
    assert "armdeploy_test::twice" in finished.error


def test_failure_of_vela_is_translated(
    tmp_path: Path, compile_: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ethosu.vela import vela

    def broken(_arguments: list[str]) -> None:
        print("Error: Allocation failed: too small")
        raise SystemExit(2)

    monkeypatch.setattr(vela, "main", broken)
    finished = compile_("-m", "two_conv", "-t", "ethos-u55", "-o", tmp_path)
    assert finished.code == 4
    assert "Vela cannot compile delegate_0: Error: Allocation failed: too small" in finished.error
    log = tmp_path / "two_conv_arm_delegate_ethos-u55-128_artifacts" / "delegate_0" / "vela.log"
    assert "too small" in log.read_text()


def test_missing_package_gives_the_pip_line(
    compile_: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = aot_compile.importlib.util.find_spec
    missing = lambda name: None if name == "tosa_serializer" else real(name)  # noqa: E731
    monkeypatch.setattr(aot_compile.importlib.util, "find_spec", missing)
    finished = compile_("-m", "two_conv")
    assert finished.code == 3
    assert 'pip install "executorch[ethos-u]==1.5.1"' in finished.error


def test_script_runs_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "aot" / "compile.py"), "--targt", "ethos-u55"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2
    assert "did you mean --target?" in result.stderr


_BRANCHES = """\
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y = self.a(x)
        return torch.cond(x.sum() > 0, lambda t: torch.fmod(t, 0.5), lambda t: t.clone(), (y,))

torch.manual_seed(0)
ModelUnderTest = Model()
ModelInputs = (torch.randn(1, 3, 8, 8),)
"""


def test_operators_inside_branches_are_listed(tmp_path: Path, compile_: Callable[..., Any]) -> None:
    (tmp_path / "branches.py").write_text(_BRANCHES)
    finished = compile_("-m", tmp_path / "branches.py", "-t", "ethos-u55", "-o", tmp_path, "--json")
    (report,) = finished.reports
    assert {"cond", "aten::fmod.Scalar"} <= {op["op"] for op in report["cpu_ops"]}
    assert len(report["delegates"]) == 1

# SPDX-License-Identifier: Apache-2.0
"""Compiling for Cortex-A: what the report says of delegates, movement and operators outside; bad options."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from aot import compile as aot_compile
from aot.cortex_a.lowering import in_type
from aot.cortex_a.options import CpuDtype, parse_cpu_dtype
from aot.cortex_a.report import summary
from aot.models import load_model
from fvp.aarch64.reference import run_reference
from report import compile_report, pte, xnnpack
from report.arguments import Parser
from report.errors import UsageError

GELU = """
import torch
from torch import nn
torch.manual_seed(0)
ModelUnderTest = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU(), nn.Conv2d(8, 4, 1)).eval()
ModelInputs = (torch.randn(1, 3, 8, 8),)
"""


def compiled(*words: str) -> list[Path]:
    parser = Parser()
    aot_compile.add_arguments(parser)
    return [path for path, _ in aot_compile.compile_models(parser.parse_args(list(words)))]


@pytest.fixture(scope="module")
def gelu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .pte whose activation XNNPACK refuses in fp16."""
    folder = tmp_path_factory.mktemp("gelu")
    (folder / "gelu.py").write_text(GELU, encoding="utf-8")
    model, out = str(folder / "gelu.py"), str(folder / "out")
    return compiled("--model", model, "-t", "cortex-a", "--dtype", "fp16", "-o", out)[0]


def test_the_report_names_partitions_movement_and_what_stays_outside(gelu: Path) -> None:
    report = compile_report.find(gelu)
    assert report is not None and gelu.name == "gelu_fp16_xnnpack_cortex-a-sme2.pte"
    data = report.data
    assert [delegate["nodes"]["Conv2d"] for delegate in data["delegates"]] == [1, 1]
    moved = [delegate["transposes"] for delegate in data["delegates"]]
    # each partition turns its input to channels last and its output back; fp16 has two bytes
    assert moved == [
        {"count": 2, "bytes": 2 * (3 * 8 * 8 + 8 * 6 * 6)},
        {"count": 2, "bytes": 2 * (8 * 6 * 6 + 4 * 6 * 6)},
    ]
    (outside,) = data["cpu_ops"]
    assert outside["op"] == "aten::gelu" and outside["kernel"] == "aten::gelu.out"
    assert outside["reason"] and "without giving a reason" not in outside["reason"]
    assert outside["module_path"] == "1"
    text = summary(data)
    assert "2 partition(s) in XNNPACK, 1 operator(s) outside" in text and outside["reason"] in text


def test_the_reference_computes_the_model_and_names_no_file_of_this_machine(gelu: Path) -> None:
    report = compile_report.find(gelu)
    assert report is not None and report.reference is not None
    values = np.load(report.example_inputs[0])
    assert values.dtype == np.float16
    (output,) = run_reference(report.reference, (values,))
    assert output.shape == (1, 4, 6, 6) and output.dtype == np.float16 and np.isfinite(output).all()
    assert str(gelu.parent).encode() not in report.reference.read_bytes()
    assert b"stack_trace" not in report.reference.read_bytes()


def test_a_delegate_is_read_back_and_a_damaged_one_is_one_error(gelu: Path) -> None:
    blob = pte.load(gelu).method().delegates[0].blob
    assert xnnpack.kinds(xnnpack.read(blob)) == {"Conv2d": 1, "StaticTranspose": 2}
    for damaged in (blob[:40], b"", blob[:4] + b"XH99" + blob[8:], blob[:64] + b"\xff" * 64 + blob[128:]):
        with pytest.raises(UsageError, match="XNNPACK delegate"):
            xnnpack.read(damaged)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-t", "cortex-a,ethos-u85-256"], "beside cortex-a"),
        (["-t", "cortex-a-sve"], "unknown target"),
        (["-t", "cortex-a", "--dtype", "a16w8"], "types for cortex-a: fp32, fp16, int8, int8-dynamic"),
        (["-t", "cortex-a", "--memory_mode", "Sram_Only"], "--memory_mode is for Ethos-U targets"),
        (["-t", "cortex-a", "--dtype", "fp32", "--calibration_data", "x.pt"], "needs quantisation"),
        (["-t", "cortex-a", "-o", "x.bpte"], "Cortex-A programs are .pte files"),
    ],
)
def test_bad_options_are_refused_before_work_starts(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        compiled("--model", "two_conv", *words)
    assert message in caught.value.one_line()


def test_a_bundled_model_stays_in_float_when_it_is_compiled_in_half() -> None:
    """The second compilation of a process gets the same module."""
    assert in_type(load_model("two_conv", None), CpuDtype.FP16).inputs[0].dtype is torch.float16
    module = load_model("two_conv", None).module
    assert module is not None
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}


def test_types_have_the_spellings_that_people_use() -> None:
    assert parse_cpu_dtype("FLOAT16", quantize=True) is CpuDtype.FP16
    assert parse_cpu_dtype("int8", quantize=False) is CpuDtype.FP32
    assert json.dumps([dtype.value for dtype in CpuDtype]) == '["fp32", "fp16", "int8", "int8-dynamic"]'

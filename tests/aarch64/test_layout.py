# SPDX-License-Identifier: Apache-2.0
"""The layout advisor finds every split and what it costs; the passes remove it and keep the function."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from aot import compile as aot_compile
from aot.cortex_a.report import summary
from armdeploy import main as armdeploy
from fvp.aarch64.reference import run_reference
from report import compile_report, layout, layout_advice, pte, xnnpack
from report.arguments import Parser
from report.errors import UsageError
from report.xnnpack import Movement, Node

NORM_LAST = """
import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GELU(), nn.BatchNorm2d(8))
        self.second = nn.Conv2d(8, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        x = self.first(x)
        return self.norm(self.second(x))

ModelUnderTest = Net()
for norm in (ModelUnderTest.first[2], ModelUnderTest.norm):
    nn.init.uniform_(norm.weight, 0.5, 2.0)
    nn.init.normal_(norm.bias)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.1, 2.0)
ModelUnderTest.eval()
ModelInputs = (torch.randn(1, 3, 8, 8),)
"""
FEATURES, IMAGE, SCORES = (channels * 8 * 8 * 2 for channels in (8, 3, 4))
"""Bytes of the model's tensors in fp16."""


def compiled(model: Path, folder: Path, *words: str) -> Path:
    parser = Parser()
    aot_compile.add_arguments(parser)
    words = ("--model", str(model), "-t", "cortex-a", "--dtype", "fp16", "-o", str(folder), *words)
    ((path, _),) = aot_compile.compile_models(parser.parse_args(list(words)))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layout") / "norm_last.py"
    path.write_text(NORM_LAST, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def split(model: Path) -> Path:
    """The model with its normalisations kept out: GELU and norm between two partitions, a norm at the end."""
    return compiled(model, model.parent / "split", "--keep-out", "batch_norm")


@pytest.fixture(scope="module")
def fixed(model: Path) -> Path:
    words = ("--keep-out", "batch_norm", "--fix-layout", "--approximate-gelu")
    return compiled(model, model.parent / "fixed", *words)


def test_every_split_is_found_with_its_place_and_cost(split: Path) -> None:
    found = layout_advice.document(split)
    (only,) = found["splits"]
    gelu, norm = only["operators"]
    assert gelu["operator"] == "aten::gelu.out" and norm["operator"].startswith("aten::_native_batch_norm")
    assert [op["module_path"] for op in (gelu, norm)] == ["first.1", "first.2"]
    assert [op["py_line"] for op in (gelu, norm)] == ["norm_last.py:14"] * 2
    assert norm["shape"] == [1, 8, 8, 8] and norm["dtype"] == "float16"
    assert norm["reason"] == "kept out of XNNPACK by --keep-out" and "fp16" in gelu["reason"]
    assert "--approximate-gelu" in gelu["advice"] and "--fix-layout" in norm["advice"]
    # out of the first partition and into the second
    assert only["transposes"] == {"count": 2, "bytes": 2 * FEATURES}
    totals = found["totals"]
    assert (totals["partitions"], totals["outside"], totals["splits"]) == (2, 3, 1)
    assert totals["at_interface"] == {"count": 1, "bytes": IMAGE}  # the output comes from outside
    assert totals["inside"]["count"] == 1  # into the norm at the end, which is no split
    assert totals["transposes"]["count"] == 4
    assert [norm["module_path"] for norm in found["unfolded_norms"]] == ["first.2"]


def test_without_the_compile_report_operators_and_cost_are_still_told(split: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.pte"
    alone.write_bytes(split.read_bytes())
    found, told = layout_advice.document(alone), layout_advice.document(split)
    assert found["totals"] == told["totals"]
    assert found["splits"][0]["transposes"] == told["splits"][0]["transposes"]
    assert found["splits"][0]["operators"][0]["module_path"] is None
    assert "aten::gelu.out" in layout_advice.to_text(found)


def test_the_passes_remove_the_split_and_say_what_they_changed(split: Path, fixed: Path) -> None:
    report = compile_report.find(fixed)
    assert report is not None
    told = report.data["layout"]
    assert told["before"] == layout_advice.document(split)["totals"]
    assert (told["after"]["partitions"], told["after"]["splits"]) == (1, 0)
    assert told["after"]["at_splits"]["count"] == 0
    norm, gelu = told["rewrites"]
    assert [place["module_path"] for place in norm["replaced"]] == ["first.2"]
    assert [place["module_path"] for place in gelu["replaced"]] == ["first.1"]
    assert norm["error"] < 4e-3  # a few roundings of fp16
    assert norm["error"] < gelu["error"] < 5e-2
    text = summary(report.data)
    assert "1 replaced" in text and "before" in text
    assert "no split" in layout_advice.to_text(layout_advice.document(fixed))


def test_the_rewritten_program_computes_the_model(split: Path, fixed: Path) -> None:
    reports = [compile_report.find(path) for path in (split, fixed)]
    assert all(report is not None and report.reference is not None for report in reports)
    values = [np.load(reports[0].example_inputs[0])]
    before, after = (run_reference(report.reference, values)[0] for report in reports)
    difference = np.abs(before.astype(float) - after.astype(float)).max() / np.abs(before).max()
    gelu = reports[1].data["layout"]["rewrites"][1]
    assert 0 < difference < 2 * gelu["error"]


def test_the_approximation_of_gelu_is_as_close_as_published() -> None:
    x = torch.linspace(-8, 8, 100_001, dtype=torch.float64)
    error = (torch.nn.functional.gelu(x) - x * torch.sigmoid(1.702 * x)).abs().max()
    assert 0.02 < error < 0.0204


def test_the_model_itself_can_be_inspected(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["inspect", "--layout", str(model), "--dtype", "fp32", "--json"]
    assert armdeploy.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "norm_last" and found["dtype"] == "fp32" and found["splits"] == []
    text = layout_advice.to_text(found)
    assert "no split" in text and "first.2 (norm_last.py:14)" in text and "conv -> norm -> act" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inspect", "x.pte", "--dtype", "fp16"], "--dtype goes with --layout"),
        (["inspect", "--layout", "x.pte", "--fix-layout"], "--fix-layout is for a model"),
        (["inspect", "--layout", "x.pte", "--commands"], "do not go with --layout"),
        (["compile", "-m", "two_conv", "-t", "ethos-u55", "--fix-layout"], "--fix-layout is for Cortex-A"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert armdeploy.main(words) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_operator_to_keep_out_is_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean batch_norm"):
        compiled(model, tmp_path, "--keep-out", "batchnorm")


def test_a_norm_that_folds_is_told_apart_when_it_is_kept_out(tmp_path: Path) -> None:
    layers = "nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3)"
    text = f"import torch\nfrom torch import nn\nModelUnderTest = nn.Sequential({layers})\n"
    (tmp_path / "folds.py").write_text(text + "ModelInputs = (torch.randn(1, 3, 8, 8),)\n", encoding="utf-8")
    found = layout_advice.document(compiled(tmp_path / "folds.py", tmp_path, "--keep-out", "batch_norm"))
    assert "XNNPACK folds it" in found["splits"][0]["operators"][0]["advice"]
    assert found["unfolded_norms"] == []


def test_a_program_of_another_backend_has_no_layout() -> None:
    program = Path(__file__).parent.parent / "data" / "two_conv_u85_256.pte"
    with pytest.raises(UsageError, match="not compiled for a Cortex-A"):
        layout_advice.document(program)


def tensor(offset: int) -> pte.TensorMeta:
    return pte.TensorMeta("float32", (1, 2, 4, 4), (0, 1, 2, 3), 0, 1, offset, None)


TURN = Node("StaticTranspose", "fp32", (1, 4, 4, 2), (0,), 2, (0, 2, 3, 1))
CONV = Node("Conv2d", "fp32", (1, 4, 4, 2), (2,), 3)
BACK = Node("StaticTranspose", "fp32", (1, 2, 4, 4), (3,), 1, (0, 3, 1, 2))
PERMUTE = Node("StaticTranspose", "fp32", (1, 2, 4, 4), (3,), 1, (0, 2, 1, 3))


def program(monkeypatch: pytest.MonkeyPatch, *graphs: tuple[Node, ...]) -> layout.Layout:
    """Partition, view, operator, partition; the view is no instruction, only another name for its tensor."""
    monkeypatch.setattr(xnnpack, "read", lambda blob: graphs[blob[0]])
    method = pte.Method(
        "forward",
        values=(tensor(0), tensor(64), tensor(64), tensor(128), tensor(192)),
        inputs=(0,),
        outputs=(4,),
        instructions=(
            pte.DelegateCall(0, (0, 1)),
            pte.KernelCall("aten::odd.out", (2, 3, 3)),
            pte.DelegateCall(1, (3, 4)),
        ),
        delegates=tuple(pte.Delegate("XnnpackBackend", {}, bytes([n])) for n in range(2)),
        planned_bytes=(0, 256),
    )
    return layout.analyse(method)


def test_a_view_between_a_partition_and_an_operator_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = program(monkeypatch, (TURN, CONV, BACK), (TURN, CONV, BACK)).splits
    assert (found.before, found.behind) == ((0,), (1,))
    assert found.transposes == Movement(2, 2 * 128)


def test_the_models_own_transposes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(monkeypatch, (TURN, CONV, PERMUTE), (TURN, CONV, BACK))
    assert (found.of_model.count, found.at_splits.count, found.at_interface.count) == (1, 1, 2)
    parts = (found.of_model, found.at_splits, found.at_interface, found.inside)
    assert sum(part.count for part in parts) == found.transposes.count == 4


def test_a_transpose_is_found_behind_operators_that_keep_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Node("Add", "fp32", (1, 2, 4, 4), (0,), 5)
    turn = Node("StaticTranspose", "fp32", (1, 4, 4, 2), (5,), 2, (0, 2, 3, 1))
    found = program(monkeypatch, (TURN, CONV, BACK), (add, turn, CONV, BACK))
    assert found.splits[0].transposes.count == 2 and found.inside.count == 0

# SPDX-License-Identifier: Apache-2.0
"""What `--model` can name, and what it says when the file is not what it should be."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from aot.model_names import example_names
from aot.models import load_model
from report.errors import EnvironmentError_, UsageError

MODELS = (
    "conv_transformer_unet",
    "deep_autoencoder",
    "ds_cnn",
    "mobilenet_v1_025",
    "mobilenet_v2",
    "resnet8",
    "transformer_encoder",
    "two_conv",
    "unet",
    "unet_norm_last",
    "unet_small",
)


def test_bundled_examples_are_the_documented_ones() -> None:
    assert example_names() == list(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_example_computes_the_same_from_the_same_seed_and_keeps_its_signal(name: str) -> None:
    first = load_model(name, None)
    del sys.modules[f"examples.{name}"]
    second = load_model(name, None)
    assert first.sha256 == second.sha256
    assert first.module is not None
    output = first.module(*first.inputs)
    assert torch.isfinite(output).all()
    assert 0.1 < float(output.std()) < 20


@pytest.mark.parametrize("name", ["ds_cnn", "resnet8", "mobilenet_v1_025"])
def test_labels_match_the_classifier(name: str) -> None:
    model = load_model(name, None)
    assert model.module is not None
    assert len(model.labels) == model.module(*model.inputs).shape[1]


@pytest.mark.parametrize("name", ["resnet8", "mobilenet_v1_025", "mobilenet_v2", "unet"])
def test_preprocessing_makes_the_models_input_shape(name: str) -> None:
    model = load_model(name, None)
    prep = model.preprocessing
    assert prep is not None
    assert (1, prep.channels, prep.height, prep.width) == tuple(model.inputs[0].shape)


def test_misspelt_example_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"unknown model 'mobilenetv2'; did you mean mobilenet_v2\?"):
        load_model("mobilenetv2", None)


def test_hash_follows_the_weights(model_file: Callable[..., Path]) -> None:
    path = model_file("self.l(x)", "torch.ones(1, 2)", "self.l = nn.Linear(2, 2)")
    before = load_model(str(path), None).sha256
    path.write_text(path.read_text().replace("manual_seed(0)", "manual_seed(1)"))
    assert load_model(str(path), None).sha256 != before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "no torch.nn.Module called ModelUnderTest"),
        ("import torch\nModelUnderTest = torch.nn.ReLU()\n", "defines no ModelInputs"),
        ("import torch\nModelUnderTest = torch.nn.ReLU()\nModelInputs = 3\n", "holds a int, not tensors"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("def (\n", "SyntaxError"),
    ],
)
def test_incomplete_model_file_names_what_is_missing(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "odd.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=rf"odd\.py.*{message}"):
        load_model(str(path), None)


@pytest.mark.parametrize("name", ["gone.py", "gone.pt2", "gone.pt"])
def test_missing_file_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"no such file: {name}"):
        load_model(name, None)


@pytest.mark.parametrize("name", ["bad.pt2", "bad.pt"])
def test_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0" * 64)
    torch.save(torch.ones(1), tmp_path / "inputs.pt")
    with pytest.raises(UsageError, match=name):
        load_model(str(tmp_path / name), str(tmp_path / "inputs.pt"))


def test_state_dict_in_place_of_a_module_is_explained(tmp_path: Path) -> None:
    torch.save(nn.Linear(2, 2).state_dict(), tmp_path / "weights.pt")
    torch.save(torch.ones(1, 2), tmp_path / "inputs.pt")
    with pytest.raises(UsageError, match="holds a OrderedDict, not a module"):
        load_model(str(tmp_path / "weights.pt"), str(tmp_path / "inputs.pt"))


def test_exported_program_brings_its_inputs(tmp_path: Path) -> None:
    torch.export.save(torch.export.export(nn.ReLU(), (torch.ones(2, 3),)), tmp_path / "relu.pt2")
    model = load_model(str(tmp_path / "relu.pt2"), None)
    assert (model.name, model.inputs[0].shape) == ("relu", (2, 3))


def test_model_input_replaces_the_files_own(tmp_path: Path) -> None:
    torch.save((torch.full((1, 3, 16, 16), 7.0),), tmp_path / "inputs.pt")
    assert float(load_model("two_conv", str(tmp_path / "inputs.pt")).inputs[0].mean()) == 7


def test_guards_of_an_exported_module_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "guarded.py").write_text(
        "import torch\n"
        "ModelInputs = (torch.ones(2, 3),)\n"
        "ModelUnderTest = torch.export.export(torch.nn.Softmax(-1), ModelInputs).module()\n"
    )
    module = load_model(str(tmp_path / "guarded.py"), None).module
    assert isinstance(module, torch.fx.GraphModule)
    assert [node.target for node in module.graph.nodes if node.op == "call_module"] == []
    torch.testing.assert_close(module(torch.ones(2, 3)), torch.full((2, 3), 1 / 3))


def test_torchvision_is_asked_for_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(EnvironmentError_, match="pip install torchvision"):
        load_model("torchvision:resnet18", None)

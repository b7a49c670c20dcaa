# SPDX-License-Identifier: Apache-2.0
"""Calibration data: found in order, limited, checked against the model's inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from aot import calibration
from aot.calibration import find_calibration
from aot.models import Model
from report.errors import UsageError
from report.preprocess import ImagePreprocessing

IMAGE = Model("image", "", (torch.zeros(1, 3, 4, 5),))
PAIR = Model("pair", "", (torch.zeros(1, 8), torch.zeros(1, 2, dtype=torch.int64)))


def test_folder_mixes_tensors_arrays_and_images_in_path_order(tmp_path: Path) -> None:
    torch.save(torch.full((1, 3, 4, 5), 1.0), tmp_path / "a.pt")
    np.save(tmp_path / "b.npy", np.full((3, 4, 5), 2, np.float32))  # the batch dimension is added
    (tmp_path / "sub").mkdir()
    Image.new("RGB", (9, 9), (255, 255, 255)).save(tmp_path / "sub" / "c.PNG")
    (tmp_path / "readme.txt").write_text("ignored")
    found = find_calibration(str(tmp_path), IMAGE)
    values = [sample[0] for sample in found.samples(IMAGE)]
    assert [float(v.mean()) for v in values] == pytest.approx([1.0, 2.0, 1.0])
    assert {v.shape for v in values} == {torch.Size([1, 3, 4, 5])}
    assert found.preprocessing == ImagePreprocessing(4, 5, (0.0,) * 3, (1.0,) * 3)


def test_no_data_means_the_example_input() -> None:
    found = find_calibration(None, IMAGE)
    assert [s[0] is IMAGE.inputs[0] for s in found.samples(IMAGE)] == [True]


def test_samples_beyond_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "MAX_SAMPLES", 2)
    for i in range(5):
        np.save(tmp_path / f"{i}.npy", np.zeros((1, 3, 4, 5), np.float32))
    found = find_calibration(str(tmp_path), IMAGE)
    assert (len(found.paths), found.skipped) == (2, 3)


def test_tuples_feed_models_with_several_inputs(tmp_path: Path) -> None:
    torch.save((torch.ones(1, 8), torch.ones(2, dtype=torch.int64)), tmp_path / "a.pt")
    ((first, second),) = find_calibration(str(tmp_path / "a.pt"), PAIR).samples(PAIR)
    assert (first.shape, second.shape) == ((1, 8), (1, 2))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(1, 3, 5, 4), r"float32\[1, 3, 5, 4\], the model takes float32\[1, 3, 4, 5\]"),
        (torch.zeros(1, 3, 4, 5, dtype=torch.int8), r"int8\[1, 3, 4, 5\]"),
        ((torch.zeros(1, 3, 4, 5),) * 2, "2 tensor"),
        ({"x": 1}, "holds a dict"),
    ],
)
def test_sample_that_does_not_fit_names_the_file(tmp_path: Path, value: object, message: str) -> None:
    torch.save(value, tmp_path / "odd.pt")
    with pytest.raises(UsageError, match=rf"odd\.pt.*{message}"):
        list(find_calibration(str(tmp_path), IMAGE).samples(IMAGE))


@pytest.mark.parametrize(("name", "data"), [("a.npy", b"\x93NUMPY"), ("a.pt", b"PK\x03\x04"), ("a.jpg", b"")])
def test_damaged_file_names_itself(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=name):
        list(find_calibration(str(tmp_path), IMAGE).samples(IMAGE))


def test_pickles_are_not_executed(tmp_path: Path) -> None:
    torch.save(torch.nn.ReLU(), tmp_path / "code.pt")
    with pytest.raises(UsageError, match=r"code\.pt"):
        list(find_calibration(str(tmp_path), IMAGE).samples(IMAGE))


@pytest.mark.parametrize("name", ["missing", "empty", "text.txt"])
def test_nothing_to_calibrate_with_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(UsageError, match=name):
        find_calibration(str(tmp_path / name), IMAGE)


def test_images_for_a_model_without_image_input(tmp_path: Path) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "c.png")
    with pytest.raises(UsageError, match=r"takes float32\[1, 8\], int64\[1, 2\]"):
        find_calibration(str(tmp_path), PAIR)

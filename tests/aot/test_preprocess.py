# SPDX-License-Identifier: Apache-2.0
"""Images as inputs: the numbers are those of the stated formula, and the record reads back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from report.errors import UsageError
from report.preprocess import ImagePreprocessing, default_preprocessing, parse_preprocessing

_MEAN, _STD = (0.5, 0.25, 0.0), (0.5, 0.25, 2.0)


def test_pixels_are_scaled_and_normalised_per_channel(tmp_path: Path) -> None:
    rgb = np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3) * 10
    Image.fromarray(rgb).save(tmp_path / "a.png")
    loaded = ImagePreprocessing(2, 4, _MEAN, _STD).load(tmp_path / "a.png")
    expected = ((rgb / 255 - np.array(_MEAN)) / np.array(_STD)).transpose(2, 0, 1)[None]
    assert loaded.dtype == np.float32
    np.testing.assert_allclose(loaded, expected, atol=1e-6)


def test_palette_images_are_converted_and_resized(tmp_path: Path) -> None:
    Image.new("RGB", (31, 17), (255, 0, 0)).convert("P").save(tmp_path / "a.png")
    loaded = ImagePreprocessing(8, 6, (0.0,) * 3, (1.0,) * 3).load(tmp_path / "a.png")
    assert loaded.shape == (1, 3, 8, 6)
    np.testing.assert_allclose(loaded[0, :, 3, 3], (1, 0, 0), atol=0.02)


def test_grey_model_takes_luminance(tmp_path: Path) -> None:
    Image.new("RGB", (5, 5), (0, 255, 0)).save(tmp_path / "a.png")
    loaded = ImagePreprocessing(5, 5, (0.0,), (1.0,)).load(tmp_path / "a.png")
    np.testing.assert_allclose(loaded, np.full((1, 1, 5, 5), 150 / 255, np.float32), atol=1e-6)


def test_record_reads_back() -> None:
    preprocessing = ImagePreprocessing(8, 9, _MEAN, _STD)
    assert ImagePreprocessing.from_json(preprocessing.to_json()) == preprocessing


def test_option_overrides_one_of_both() -> None:
    parsed = parse_preprocessing("std=0.5,0.5,0.5", (1, 3, 7, 9))
    assert parsed == ImagePreprocessing(7, 9, (0.0,) * 3, (0.5,) * 3)


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("mean=1,2", (1, 3, 8, 8), "2 and std 3"),
        ("mean=1;std=1", (1, 3, 8, 8), "channel"),
        ("mean=a,b,c", (1, 3, 8, 8), "bad numbers"),
        ("std=0,1,1", (1, 3, 8, 8), "not positive"),
        ("gain=2", (1, 3, 8, 8), "unknown key 'gain'"),
        ("mean=1", (1, 640), "takes no image"),
    ],
)
def test_bad_option_is_one_error(text: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_preprocessing(text, shape)


def test_shapes_that_hold_no_image_have_no_default() -> None:
    assert default_preprocessing((1, 2, 8, 8)) is None
    assert default_preprocessing((2, 3, 8, 8)) is None
    assert default_preprocessing((1, 640)) is None


def test_text_named_png_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_text("not an image")
    with pytest.raises(UsageError, match=r"a\.png.*not a readable image"):
        ImagePreprocessing(4, 4, (0.0,), (1.0,)).load(path)


@pytest.mark.parametrize("record", [{}, {"height": 1, "width": 1, "mean": [0], "std": ["x"]}])
def test_incomplete_record_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="incomplete"):
        ImagePreprocessing.from_json(record)

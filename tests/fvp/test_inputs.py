# SPDX-License-Identifier: Apache-2.0
"""Input files: what fits is taken, what does not is refused in one line that names both sides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fvp.inputs import load_inputs, random_inputs
from report.errors import UsageError
from report.preprocess import ImagePreprocessing
from report.pte import TensorMeta


def tensor(dtype: str = "float32", shape: tuple[int, ...] = (1, 3, 4, 5)) -> TensorMeta:
    return TensorMeta(dtype, shape, tuple(range(len(shape))), 0, 1, 0, None)


def test_npy_pt_and_bin_give_the_same_array(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((1, 3, 4, 5)).astype(np.float32)
    np.save(tmp_path / "a.npy", array)
    torch.save(torch.from_numpy(array), tmp_path / "a.pt")
    (tmp_path / "a.bin").write_bytes(array.tobytes())
    for name in ("a.npy", "a.pt", "a.bin"):
        (loaded,) = load_inputs([tmp_path / name], [tensor()], None)
        np.testing.assert_array_equal(loaded, array)


def test_a_png_is_resized_and_normalised(tmp_path: Path) -> None:
    Image.new("RGB", (9, 7), (255, 0, 51)).save(tmp_path / "a.png")
    preprocessing = ImagePreprocessing(4, 5, (0.5, 0.5, 0.5), (0.5, 0.5, 0.25))
    (loaded,) = load_inputs([tmp_path / "a.png"], [tensor()], preprocessing)
    assert loaded.shape == (1, 3, 4, 5)
    np.testing.assert_allclose(loaded[0, :, 0, 0], [1.0, -1.0, -1.2], rtol=1e-6)


def test_a_missing_leading_one_is_added(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 5), np.float32))
    assert load_inputs([tmp_path / "a.npy"], [tensor()], None)[0].shape == (1, 3, 4, 5)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 3, 5, 4), np.float32), ["[1, 3, 5, 4]", "float32[1, 3, 4, 5]"]),
        (np.zeros((1, 3, 4, 5), np.int8), ["int8", "float32[1, 3, 4, 5]"]),
    ],
)
def test_a_misfit_names_both_sides(tmp_path: Path, array: np.ndarray, words: list[str]) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(UsageError) as caught:
        load_inputs([tmp_path / "a.npy"], [tensor()], None)
    assert all(word in caught.value.one_line() for word in words)


def test_floats_for_an_integer_program_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((1, 3, 4, 5), np.float32))
    with pytest.raises(UsageError, match="quantise the input"):
        load_inputs([tmp_path / "a.npy"], [tensor("int8")], None)


@pytest.mark.parametrize("content", [b"", b"not numpy", b"\x93NUMPY\x01\x00garbage"])
@pytest.mark.parametrize("suffix", [".npy", ".pt", ".bin", ".png"])
def test_damaged_files_are_usage_errors(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="a\\" + suffix):
        load_inputs([path], [tensor()], None)


def test_pickled_objects_are_not_executed(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError):
        load_inputs([tmp_path / "a.npy"], [tensor()], None)


def test_the_number_of_files_must_be_the_number_of_inputs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1 input file"):
        load_inputs([tmp_path / "a.npy"], [tensor(), tensor("int8", (1, 2))], None)


def test_random_inputs_repeat_with_their_seed() -> None:
    tensors = [tensor(), tensor("int8", (1, 300))]
    first, second, other = (random_inputs(tensors, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert first[1].min() < -100 and first[1].max() > 100

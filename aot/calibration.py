# SPDX-License-Identifier: Apache-2.0
"""Calibration samples: tensors and images of a file or folder, each checked against the model's inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aot.models import Model, load_tensors
from report.errors import UsageError
from report.preprocess import IMAGE_SUFFIXES, ImagePreprocessing, default_preprocessing

MAX_SAMPLES = 1000
"""Samples used of a folder, in the order of their paths; the limit of ExecuTorch's own compiler script."""

_TENSOR_SUFFIXES = frozenset({".pt", ".pth"})
_SUFFIXES = _TENSOR_SUFFIXES | IMAGE_SUFFIXES | {".npy"}


@dataclass(frozen=True)
class Calibration:
    """Where the quantisation ranges come from.

    Attributes:
        source: the file or folder, None when the example input stands in for data.
        paths: the sample files, at most `MAX_SAMPLES`.
        skipped: samples beyond that limit.
        preprocessing: applied to images, None when there is none among `paths`.
    """

    source: Path | None
    paths: tuple[Path, ...]
    skipped: int
    preprocessing: ImagePreprocessing | None

    def samples(self, model: Model) -> Iterator[tuple[Any, ...]]:
        """The samples one by one; the example inputs alone when there is no data."""
        if self.source is None:
            yield model.inputs
        for path in self.paths:
            yield _load_sample(path, model, self.preprocessing)


def find_calibration(
    data: str | None, model: Model, preprocessing: ImagePreprocessing | None = None
) -> Calibration:
    """Find the samples that `--calibration_data` names; `preprocessing` overrides the model's own.

    Raises:
        UsageError: nothing there, no sample in it, or images for a model that takes none.
    """
    if data is None:
        return Calibration(None, (), 0, None)
    paths = _sample_paths(Path(data))
    if not any(path.suffix.lower() in IMAGE_SUFFIXES for path in paths):
        return Calibration(Path(data), paths[:MAX_SAMPLES], max(0, len(paths) - MAX_SAMPLES), None)
    preprocessing = preprocessing or image_preprocessing(model)
    if preprocessing is None:
        raise UsageError(
            f"{data} holds images, but {model.name} takes {_describe(model.inputs)}",
            where="--calibration_data",
            hint="give .pt or .npy files of the input's shape",
        )
    return Calibration(Path(data), paths[:MAX_SAMPLES], max(0, len(paths) - MAX_SAMPLES), preprocessing)


def image_preprocessing(model: Model) -> ImagePreprocessing | None:
    """The model's own preprocessing, else pixels in 0..1 where its only input can hold an image."""
    if model.preprocessing is not None:
        return model.preprocessing
    return default_preprocessing(model.inputs[0].shape) if len(model.inputs) == 1 else None


def _sample_paths(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        if path.suffix.lower() not in _SUFFIXES:
            raise UsageError(
                f"{path} is no calibration file", where="--calibration_data", hint=f"known: {_suffix_list()}"
            )
        return (path,)
    if not path.is_dir():
        raise UsageError(f"no such file or folder: {path}", where="--calibration_data")
    paths = sorted(p for p in path.rglob("*") if p.suffix.lower() in _SUFFIXES and p.is_file())
    if not paths:
        raise UsageError(f"{path} holds no {_suffix_list()} file", where="--calibration_data")
    return tuple(paths)


def _suffix_list() -> str:
    return ", ".join(sorted(_SUFFIXES))


def _load_sample(path: Path, model: Model, preprocessing: ImagePreprocessing | None) -> tuple[Any, ...]:
    suffix = path.suffix.lower()
    if suffix in _TENSOR_SUFFIXES:
        sample = load_tensors(path)
    elif suffix in IMAGE_SUFFIXES and preprocessing is not None:
        sample = (torch.from_numpy(preprocessing.load(path)),)
    else:
        sample = (_load_array(path),)
    return _checked(sample, model.inputs, path)


def _load_array(path: Path) -> torch.Tensor:
    try:
        return torch.from_numpy(np.ascontiguousarray(np.load(path, allow_pickle=False)))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError("not a readable .npy file", where=str(path), why=str(error)) from error


def _checked(sample: tuple[Any, ...], expected: Sequence[Any], path: Path) -> tuple[Any, ...]:
    """`sample` with a missing batch dimension added, when it fits the model's inputs."""
    if len(sample) != len(expected):
        raise UsageError(f"{len(sample)} tensor(s), the model takes {len(expected)}", where=str(path))
    fitted = tuple(
        value[None] if list(value.shape) == list(want.shape[1:]) and want.shape[0] == 1 else value
        for value, want in zip(sample, expected, strict=True)
    )
    for value, want in zip(fitted, expected, strict=True):
        if value.shape != want.shape or value.dtype != want.dtype:
            raise UsageError(
                f"holds {_describe((value,))}, the model takes {_describe((want,))}", where=str(path)
            )
    return fitted


def _describe(tensors: Sequence[Any]) -> str:
    """Shapes and dtypes as ``float32[1, 3, 8, 8]``."""
    return ", ".join(f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for t in tensors)

# SPDX-License-Identifier: Apache-2.0
"""Images as model inputs: the one preprocessing that calibration and runs share.

An image becomes float32 [1, C, H, W]: decoded, converted to RGB (C = 3) or grey (C = 1), resized to H x W
with bilinear interpolation (Pillow's, which antialiases when it shrinks), divided by 255, then
``(x - mean) / std`` per channel. What was applied is recorded in the compile report, as
`ImagePreprocessing.to_json` gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from report.errors import EnvironmentError_, UsageError

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg"})

_MODES = {1: "L", 3: "RGB"}


@dataclass(frozen=True)
class ImagePreprocessing:
    """How an image file becomes a tensor. `mean` and `std` are per channel, for pixels in 0..1."""

    height: int
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.mean) not in _MODES or len(self.mean) != len(self.std):
            raise UsageError(
                f"mean has {len(self.mean)} and std {len(self.std)} values",
                where="preprocessing",
                hint="give one value per channel to both: 1 (grey) or 3 (RGB)",
            )
        if not all(value > 0 for value in self.std):
            raise UsageError(f"std {self.std} is not positive", where="preprocessing")

    @property
    def channels(self) -> int:
        """Channels of the tensor: 1 for grey, 3 for RGB."""
        return len(self.mean)

    def load(self, path: Path) -> np.ndarray:
        """The image at `path` as float32 [1, C, H, W].

        Raises:
            EnvironmentError_: Pillow is not installed.
            UsageError: the file is not a readable image.
        """
        pixels = np.asarray(_open(path, _MODES[self.channels], (self.width, self.height)), np.float32) / 255
        pixels = pixels.reshape(self.height, self.width, self.channels)
        normal = (pixels - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        return np.ascontiguousarray(normal.transpose(2, 0, 1)[None])

    def to_json(self) -> dict[str, Any]:
        """The record in the compile report; `from_json` reads it back."""
        return {
            "kind": "image",
            "colour": "grey" if self.channels == 1 else "rgb",
            "resize": "bilinear",
            "scale": "1/255",
            "layout": "NCHW",
            "height": self.height,
            "width": self.width,
            "mean": list(self.mean),
            "std": list(self.std),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> ImagePreprocessing:
        """Read what `to_json` wrote.

        Raises:
            UsageError: a key is missing or of the wrong kind.
        """
        try:
            return cls(
                int(record["height"]), int(record["width"]), _floats(record["mean"]), _floats(record["std"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                "the preprocessing record is incomplete", where="compile report", why=repr(error)
            ) from error


def default_preprocessing(shape: Sequence[int]) -> ImagePreprocessing | None:
    """Pixels scaled to 0..1 for an input of `shape` [1, C, H, W], None where no image fits it."""
    if len(shape) != 4 or shape[0] != 1 or shape[1] not in _MODES:
        return None
    return ImagePreprocessing(shape[2], shape[3], (0.0,) * shape[1], (1.0,) * shape[1])


def parse_preprocessing(text: str, shape: Sequence[int]) -> ImagePreprocessing:
    """Preprocessing from ``mean=0.485,0.456,0.406;std=0.229,0.224,0.225`` for an input of `shape`.

    A key left out keeps its default (mean 0, std 1).

    Raises:
        UsageError: an unknown key, a value that is no number, or an input that no image fits.
    """
    base = default_preprocessing(shape)
    if base is None:
        raise UsageError(
            f"the model's input {list(shape)} takes no image",
            where="--preprocess",
            hint="images need [1, 1|3, H, W]",
        )
    values = {"mean": base.mean, "std": base.std}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        key, _, numbers = item.partition("=")
        if key.strip() not in values:
            raise UsageError(f"unknown key {key.strip()!r}", where="--preprocess", hint="keys: mean, std")
        try:
            values[key.strip()] = _floats(numbers.split(","))
        except ValueError as error:
            raise UsageError(f"bad numbers in {item!r}", where="--preprocess", why=str(error)) from error
    preprocessing = ImagePreprocessing(base.height, base.width, values["mean"], values["std"])
    if preprocessing.channels != base.channels:
        raise UsageError(
            f"{preprocessing.channels} value(s) for {base.channels} channel(s)", where="--preprocess"
        )
    return preprocessing


def _floats(values: Sequence[Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _open(path: Path, mode: str, size: tuple[int, int]) -> Any:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise EnvironmentError_(
            f"cannot read {path.name}", why="Pillow is not installed", hint="pip install pillow"
        ) from error
    try:
        with Image.open(path) as image:
            return image.convert(mode).resize(size, Image.Resampling.BILINEAR)
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise UsageError("not a readable image", where=str(path), why=str(error)) from error

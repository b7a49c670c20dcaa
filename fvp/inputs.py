# SPDX-License-Identifier: Apache-2.0
"""Input files of a run: tensors (.npy, .pt), raw bytes (.bin) and images (.png, .jpg)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from report.errors import UsageError
from report.preprocess import IMAGE_SUFFIXES, ImagePreprocessing, default_preprocessing
from report.pte import TensorMeta


def load_inputs(
    files: Sequence[Path], tensors: Sequence[TensorMeta], preprocessing: ImagePreprocessing | None
) -> tuple[np.ndarray, ...]:
    """One array for each of the program's input `tensors`, with its shape and dtype.

    Args:
        files: one file an input, in the program's order.
        preprocessing: for images; None takes pixels scaled to 0..1.

    Raises:
        UsageError: a file is missing or unreadable, or its count, shape, dtype or size does not fit.
    """
    if len(files) != len(tensors):
        raise UsageError(
            f"{len(files)} input file(s) for {len(tensors)} input(s)",
            where="--input",
            hint="give --input once for each input: " + ", ".join(describe(t) for t in tensors),
        )
    return tuple(_load(path, tensor, preprocessing) for path, tensor in zip(files, tensors, strict=True))


def random_inputs(tensors: Sequence[TensorMeta], seed: int) -> tuple[np.ndarray, ...]:
    """Seeded inputs: float tensors are standard normal, integer tensors uniform over their range."""
    rng = np.random.default_rng(seed)
    return tuple(_random(rng, tensor) for tensor in tensors)


def describe(tensor: TensorMeta) -> str:
    """``float32[1, 3, 224, 224]``."""
    return f"{tensor.dtype}{list(tensor.shape)}"


def _random(rng: np.random.Generator, tensor: TensorMeta) -> np.ndarray:
    dtype = np.dtype(tensor.dtype)
    if dtype.kind == "f":
        return rng.standard_normal(tensor.shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, tensor.shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, tensor.shape, dtype=dtype, endpoint=True)


def _load(path: Path, tensor: TensorMeta, preprocessing: ImagePreprocessing | None) -> np.ndarray:
    if not path.is_file():
        raise UsageError("no such file", where=f"--input {path}")
    suffix = path.suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        return _fitted(path, _image(path, tensor, preprocessing), tensor)
    if suffix == ".bin":
        return _raw(path, tensor)
    readers: dict[str, Callable[[Path], np.ndarray]] = {".npy": _numpy, ".pt": _torch}
    if suffix not in readers:
        known = ", ".join(sorted({*readers, ".bin", *IMAGE_SUFFIXES}))
        raise UsageError(
            f"unknown file type {suffix or path.name!r}", where=f"--input {path}", hint=f"known: {known}"
        )
    return _fitted(path, readers[suffix](path), tensor)


def _image(path: Path, tensor: TensorMeta, preprocessing: ImagePreprocessing | None) -> np.ndarray:
    chosen = preprocessing or default_preprocessing(tensor.shape)
    if chosen is None or tensor.dtype != "float32":
        raise UsageError(f"the input {describe(tensor)} takes no image", where=f"--input {path}")
    return chosen.load(path)


def _raw(path: Path, tensor: TensorMeta) -> np.ndarray:
    data = path.read_bytes()
    if len(data) != tensor.nbytes:
        why = f"{describe(tensor)} takes {tensor.nbytes}"
        raise UsageError(f"the file has {len(data)} bytes", where=f"--input {path}", why=why)
    return np.frombuffer(data, np.dtype(tensor.dtype)).reshape(tensor.shape)


def _numpy(path: Path) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise UsageError("not a readable .npy file", where=f"--input {path}", why=str(error)) from error
    if not isinstance(array, np.ndarray):
        raise UsageError("not one array", where=f"--input {path}", hint="save it with numpy.save")
    return array


def _torch(path: Path) -> np.ndarray:
    import torch

    try:
        value = torch.load(path, weights_only=True)
    except Exception as error:  # torch.load raises whatever its unpickler meets
        raise UsageError("not a readable .pt file", where=f"--input {path}", why=str(error)) from error
    if isinstance(value, tuple | list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, torch.Tensor):
        raise UsageError(f"holds a {type(value).__name__}, not a tensor", where=f"--input {path}")
    return value.detach().numpy()


def _fitted(path: Path, array: np.ndarray, tensor: TensorMeta) -> np.ndarray:
    """The array as the program takes it: leading ones added or dropped, float64 narrowed, nothing else."""
    if array.dtype == np.float64 and tensor.dtype == "float32":
        array = array.astype(np.float32)
    if array.dtype != np.dtype(tensor.dtype):
        hint = (
            "the program takes raw values of this type: quantise the input"
            if tensor.dtype[:3] == "int"
            else ""
        )
        raise UsageError(
            f"dtype is {array.dtype}",
            where=f"--input {path}",
            why=f"the program takes {describe(tensor)}",
            hint=hint,
        )
    if _without_leading_ones(array.shape) != _without_leading_ones(tensor.shape):
        why = f"the program takes {describe(tensor)}"
        raise UsageError(f"shape is {list(array.shape)}", where=f"--input {path}", why=why)
    return np.ascontiguousarray(array.reshape(tensor.shape))


def _without_leading_ones(shape: Sequence[int]) -> tuple[int, ...]:
    first = next((i for i, size in enumerate(shape) if size != 1), len(shape))
    return tuple(shape[first:])

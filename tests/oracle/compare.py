# SPDX-License-Identifier: Apache-2.0
"""Run one delegate on the NPU model and on the reference model, and compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npu.config import npu_config
from npu.container import VelaBin
from npu.machine import execute
from oracle import reference


def differences(binary: VelaBin, npu: str, tosa: bytes, inputs: Sequence[np.ndarray]) -> list[str]:
    """What differs between `npu.machine.execute` and the reference model, a line for each output."""
    expected = reference.run_reference(tosa, inputs)
    actual = execute(binary, npu_config(npu), inputs)
    lines = [] if len(actual) == len(expected) else [f"{len(actual)} outputs, {len(expected)} expected"]
    for number, (got, want) in enumerate(zip(actual, expected, strict=False)):
        lines += [f"output {number}: {text}" for text in _array_differences(got, want)]
    return lines


def _array_differences(got: np.ndarray, want: np.ndarray) -> list[str]:
    if got.size != want.size or got.dtype.itemsize != want.dtype.itemsize:
        return [f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"]
    got = got.reshape(want.shape)
    if np.array_equal(got, want):
        return []
    wrong = np.argwhere(got != want)
    worst = np.abs(got.astype(np.int64) - want.astype(np.int64)).max()
    first = tuple(wrong[0].tolist())
    count = f"{len(wrong)} of {want.size} elements differ by up to {worst}"
    return [f"{count}; first {first}: {got[first]}, expected {want[first]}"]

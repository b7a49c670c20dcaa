# SPDX-License-Identifier: Apache-2.0
"""Inputs for the numeric oracle: Arm's TOSA reference model run on the very graph that Vela compiles."""

from __future__ import annotations

import numpy as np

from fvp.tosa import TensorType, run_reference, signature

__all__ = ["random_inputs", "run_reference"]


def random_inputs(tosa: bytes, seed: int, index_limit: int = 1) -> list[np.ndarray]:
    """Uniform random inputs over the whole range of int8 and int16; int32 are indices in [0, index_limit)."""
    rng = np.random.default_rng(seed)
    return [_random_array(rng, tensor, index_limit) for tensor in signature(tosa).inputs]


def _random_array(rng: np.random.Generator, tensor: TensorType, index_limit: int) -> np.ndarray:
    if tensor.dtype in (np.int8, np.int16):
        info = np.iinfo(tensor.dtype)
        return rng.integers(info.min, info.max, tensor.shape, dtype=tensor.dtype, endpoint=True)
    return rng.integers(0, 2 if tensor.dtype == np.bool_ else index_limit, tensor.shape).astype(tensor.dtype)

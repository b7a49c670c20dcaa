# SPDX-License-Identifier: Apache-2.0
"""Values that kernels are tried with: ordinary ones, and those at which they go wrong."""

from __future__ import annotations

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
SPECIAL = (0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e30)


def values(dtype: torch.dtype, shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    """Random values; floats begin with zeros, infinities, NaN, a huge number."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point:
        low = 0 if dtype == torch.uint8 else -100
        return torch.randint(low, 100, shape, generator=generator).to(dtype)
    result = torch.randn(shape, generator=generator) * 3
    count = min(len(SPECIAL), result.numel())
    result.reshape(-1)[:count] = torch.tensor(SPECIAL[:count])
    return result.to(dtype)


def nonzero(dtype: torch.dtype, shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    """Finite values without zeros: divisors, bases and exponents."""
    found = values(dtype, shape, seed)
    if dtype.is_floating_point:
        found = torch.nan_to_num(found, posinf=7.0, neginf=-7.0).clamp(-100, 100)
    return torch.where(found == 0, torch.ones_like(found), found)

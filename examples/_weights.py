# SPDX-License-Identifier: Apache-2.0
"""Seeded weights for models that come without training.

Plain random weights make a poor test of quantisation: every output channel gets the same range, and deep nets
lose their signal. So each channel gets a range of its own, and batch norms get the statistics that the
model's own activations have, as training would have left them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_RANGES = (0.5, 2.0)
"""Each output channel's weights are scaled by a factor between these."""


def seeded(model: nn.Module, calibration: Tensor, *, seed: int) -> nn.Module:
    """Fill `model` from `seed`, settle its batch norms on `calibration`, and return it in eval mode.

    Args:
        model: any module; convolutions and linear layers are re-initialised in the order of `modules()`.
        calibration: one batch of inputs, the first dimension is the batch.
    """
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            _fill(module, generator)
        elif isinstance(module, nn.modules.batchnorm._BatchNorm):
            _fill_norm(module, generator)
    _settle_batch_norms(model, calibration)
    return model.eval().requires_grad_(False)


def _uniform(shape: torch.Size, low: float, high: float, generator: torch.Generator) -> Tensor:
    return torch.rand(shape, generator=generator) * (high - low) + low


def _fill(layer: nn.Module, generator: torch.Generator) -> None:
    """Kaiming-scaled normal weights times a factor per output channel; small biases."""
    weight, bias = layer.weight, layer.bias
    fan_in = weight[0].numel() if not isinstance(layer, nn.ConvTranspose2d) else weight[:, 0].numel()
    channel_dim = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
    shape = [1] * weight.dim()
    shape[channel_dim] = weight.shape[channel_dim]
    factors = _uniform(torch.Size(shape), *_RANGES, generator)
    with torch.no_grad():
        weight.copy_(torch.randn(weight.shape, generator=generator) * (2.0 / fan_in) ** 0.5 * factors)
        if bias is not None:
            bias.copy_(torch.randn(bias.shape, generator=generator) * 0.05)


def _fill_norm(norm: nn.Module, generator: torch.Generator) -> None:
    with torch.no_grad():
        norm.weight.copy_(_uniform(norm.weight.shape, 0.6, 1.4, generator))
        norm.bias.copy_(torch.randn(norm.bias.shape, generator=generator) * 0.1)


def _settle_batch_norms(model: nn.Module, calibration: Tensor) -> None:
    """Set running mean and variance to those of `calibration` (momentum None: cumulative average)."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    dropouts = [m.eval() for m in model.modules() if isinstance(m, nn.Dropout)]
    with torch.no_grad():
        model(calibration)
    del dropouts
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum

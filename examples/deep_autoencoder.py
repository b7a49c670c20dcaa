# SPDX-License-Identifier: Apache-2.0
"""Deep autoencoder, anomaly detection: MLPerf Tiny's ToyADMOS model.

Input and output: [1, 640], five frames of 128 log-mel bands. 264,192 MACs, 267,928 parameters.
Weights are random (fixed seed).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples._weights import seeded

_WIDTHS = (128, 128, 128, 128, 8, 128, 128, 128, 128)


class DeepAutoencoder(nn.Module):
    """Nine hidden linear layers with batch norm and ReLU, the middle one 8 wide, and a linear output."""

    def __init__(self, inputs: int = 640) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = inputs
        for outputs in _WIDTHS:
            layers += [nn.Linear(width, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
            width = outputs
        self.layers = nn.Sequential(*layers, nn.Linear(width, inputs))

    def forward(self, x: Tensor) -> Tensor:
        """[N, 640] -> reconstruction [N, 640]."""
        return self.layers(x)


_BATCH = torch.randn(16, 640, generator=torch.Generator().manual_seed(1))

ModelUnderTest = seeded(DeepAutoencoder(), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

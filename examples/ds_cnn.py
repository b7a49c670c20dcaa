# SPDX-License-Identifier: Apache-2.0
"""DS-CNN, keyword spotting: MLPerf Tiny's KWS model (Zhang et al., "Hello Edge", 2017), 12 classes.

Input: [1, 1, 49, 10], 49 frames of 10 mel-frequency coefficients. 2,656,768 MACs, 23,180 parameters.
Weights are random (fixed seed), so the scores mean nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples._weights import seeded

Labels = (
    "down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "silence", "unknown",
)  # fmt: skip


def _separable(channels: int) -> nn.Sequential:
    """Depthwise 3x3 and pointwise 1x1 convolution, each with batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    )


class DsCnn(nn.Module):
    """10x4 convolution with stride 2, four depthwise separable blocks, global average, linear."""

    def __init__(self, channels: int = 64, classes: int = 12) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.ZeroPad2d((1, 1, 4, 5)),  # TensorFlow's "same" for a 10x4 kernel with stride 2
            nn.Conv2d(1, channels, (10, 4), stride=2, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        )
        self.blocks = nn.Sequential(*(_separable(channels) for _ in range(4)))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 1, 49, 10] -> scores [N, 12]."""
        return self.classifier(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


_BATCH = torch.randn(8, 1, 49, 10, generator=torch.Generator().manual_seed(1))

ModelUnderTest = seeded(DsCnn(), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

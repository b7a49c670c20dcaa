# SPDX-License-Identifier: Apache-2.0
"""MobileNetV1 0.25, person detection: MLPerf Tiny's Visual Wake Words model (Howard et al., 2017), 2 classes.

Input: [1, 3, 96, 96], RGB. 7,489,664 MACs, 213,586 parameters.
Weights are random (fixed seed), so the scores mean nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples._weights import seeded
from report.preprocess import ImagePreprocessing

Labels = ("no person", "person")
Preprocessing = ImagePreprocessing(96, 96, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))

_BLOCKS = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))
"""Output channels and stride of each block: those of the paper times 0.25."""


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Padded convolution, batch norm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class MobileNetV1(nn.Module):
    """Stem of 8 channels, 13 depthwise separable blocks, global average, linear."""

    def __init__(self, classes: int = 2) -> None:
        super().__init__()
        layers = [_conv(3, 8, 3, stride=2)]
        channels = 8
        for outputs, stride in _BLOCKS:
            layers += [_conv(channels, channels, 3, stride, groups=channels), _conv(channels, outputs, 1)]
            channels = outputs
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 3, 96, 96] -> scores [N, 2]."""
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))


_BATCH = torch.rand(4, 3, 96, 96, generator=torch.Generator().manual_seed(1)) * 2 - 1

ModelUnderTest = seeded(MobileNetV1(), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

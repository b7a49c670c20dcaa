# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 1.0 at 224 x 224 (Sandler et al., 2018), 1000 classes: an ImageNet classifier's shape.

Input: [1, 3, 224, 224], RGB, normalised as for ImageNet. 300,774,272 MACs, 3,504,872 parameters.
Weights are random (fixed seed), so the scores mean nothing; the batch norms have the statistics of the
model's own activations, so the signal survives 53 layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples._weights import seeded
from report.preprocess import ImagePreprocessing

Preprocessing = ImagePreprocessing(224, 224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))

_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, output channels, blocks and stride of the first block: table 2 of the paper."""


def _conv(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """Padded convolution, batch norm and ReLU6."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(),
    )


class _InvertedResidual(nn.Module):
    """Expand (1x1), filter (depthwise 3x3), project (1x1, linear); added to the input where shapes allow."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        expand = [_conv(inputs, hidden)] if expansion > 1 else []
        self.layers = nn.Sequential(
            *expand,
            _conv(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class MobileNetV2(nn.Module):
    """Stem, 17 inverted residuals, 1x1 convolution to 1280 channels, global average, linear."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [_conv(3, 32, 3, stride=2)]
        channels = 32
        for expansion, outputs, count, stride in _STAGES:
            for block in range(count):
                layers.append(_InvertedResidual(channels, outputs, 1 if block else stride, expansion))
                channels = outputs
        self.features = nn.Sequential(*layers, _conv(channels, 1280))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(1280, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 3, 224, 224] -> scores [N, 1000]."""
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))


_BATCH = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(1))

ModelUnderTest = seeded(MobileNetV2(), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

# SPDX-License-Identifier: Apache-2.0
"""ResNet-8, image classification: MLPerf Tiny's CIFAR-10 model (v1), 10 classes.

Input: [1, 3, 32, 32], RGB. 12,501,632 MACs, 77,946 parameters.
Weights are random (fixed seed), so the scores mean nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples._weights import seeded
from report.preprocess import ImagePreprocessing

Labels = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
Preprocessing = ImagePreprocessing(32, 32, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))


def _conv_norm(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """3x3 convolution and batch norm."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(outputs)
    )


class _Stage(nn.Module):
    """Two 3x3 convolutions beside a shortcut; the shortcut is a 1x1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _conv_norm(inputs, outputs, stride)
        self.second = _conv_norm(outputs, outputs)
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


class ResNet8(nn.Module):
    """Stem, three residual stages of 16, 32 and 64 channels, global average, linear."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv_norm(3, 16), nn.ReLU())
        self.stages = nn.Sequential(_Stage(16, 16, 1), _Stage(16, 32, 2), _Stage(32, 64, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 3, 32, 32] -> scores [N, 10]."""
        return self.classifier(torch.flatten(self.pool(self.stages(self.stem(x))), 1))


_BATCH = torch.rand(8, 3, 32, 32, generator=torch.Generator().manual_seed(1)) * 2 - 1

ModelUnderTest = seeded(ResNet8(), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

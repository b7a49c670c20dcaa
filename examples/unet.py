# SPDX-License-Identifier: Apache-2.0
"""A small convolutional UNet (Ronneberger et al., 2015) for binary segmentation of 96 x 96 images.

Input: [1, 3, 96, 96], RGB. Output: [1, 1, 96, 96], the score of the foreground at each pixel. The paper's
architecture with three levels, 8 to 32 channels, padded convolutions and transposed convolutions to go up;
the sizes are ours. 57,507,840 MACs, 29,625 parameters. Weights are random (fixed seed).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from examples._weights import seeded
from report.preprocess import ImagePreprocessing

Preprocessing = ImagePreprocessing(96, 96, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))


class UNet(nn.Module):
    """Two steps down by max pooling, two up by transposed convolution, with skip connections.

    Args:
        width: channels of the first level; each step down doubles them.
        activation: behind each 3x3 convolution.
        norm_last: whether the batch norms come after the activations, where they fold into no convolution.
    """

    def __init__(
        self, width: int = 8, activation: Callable[[], nn.Module] = nn.ReLU, norm_last: bool = False
    ) -> None:
        super().__init__()

        def double(inputs: int, outputs: int) -> nn.Sequential:
            """Two 3x3 convolutions, each with batch norm and activation."""
            layers: list[nn.Module] = []
            for channels in (inputs, outputs):
                layers.append(nn.Conv2d(channels, outputs, 3, padding=1, bias=False))
                pair = (nn.BatchNorm2d(outputs), activation())
                layers += reversed(pair) if norm_last else pair
            return nn.Sequential(*layers)

        self.down1 = double(3, width)
        self.down2 = double(width, 2 * width)
        self.bottom = double(2 * width, 4 * width)
        self.pool = nn.MaxPool2d(2)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.merge2 = double(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge1 = double(2 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 3, 96, 96] -> [N, 1, 96, 96]."""
        skip1 = self.down1(x)
        skip2 = self.down2(self.pool(skip1))
        x = self.bottom(self.pool(skip2))
        x = self.merge2(torch.cat([self.up2(x), skip2], dim=1))
        x = self.merge1(torch.cat([self.up1(x), skip1], dim=1))
        return self.head(x)


_BATCH = torch.rand(4, 3, 96, 96, generator=torch.Generator().manual_seed(1)) * 2 - 1

ModelUnderTest = seeded(UNet(), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

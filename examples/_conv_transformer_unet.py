# SPDX-License-Identifier: Apache-2.0
"""A convolutional UNet with a transformer at its bottom, after the published description of SqueezeSAM.

Varadarajan et al., "SqueezeSAM: User friendly mobile interactive segmentation" (2023) describe a UNet of
convolution blocks whose lowest level is a transformer. This definition is the project's own: blocks of
convolution, activation and normalisation in that order, max pooling to go down, transposed convolutions and
skip connections to go up.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


def _block(inputs: int, outputs: int) -> nn.Sequential:
    """3x3 convolution, ReLU, batch norm: the norm comes last, so it cannot be folded into the convolution."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(outputs))


class _Layer(nn.Module):
    """Self-attention and feed-forward, each after a layer norm and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self._attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))

    def _attention(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        query, key, value = (
            layer(x).reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class ConvTransformerUNet(nn.Module):
    """Four steps down, a transformer on what is left, four steps up, a score for each pixel.

    Args:
        widths: channels of the five levels, the last one the transformer's.
        layers, heads: of the transformer.
    """

    def __init__(self, widths: tuple[int, ...], layers: int, heads: int) -> None:
        super().__init__()
        pairs = list(pairwise(widths))
        self.stem = _block(3, widths[0])
        self.down = nn.ModuleList(_block(above, below) for above, below in pairs)
        self.pool = nn.MaxPool2d(2)
        self.transformer = nn.Sequential(*(_Layer(widths[-1], heads) for _ in range(layers)))
        self.up = nn.ModuleList(nn.ConvTranspose2d(below, above, 2, stride=2) for above, below in pairs)
        self.merge = nn.ModuleList(_block(2 * above, above) for above, _ in pairs)
        self.head = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 3, H, W] -> [N, 1, H, W]; H and W are multiples of 16."""
        x = self.stem(x)
        skips = []
        for block in self.down:
            skips.append(x)
            x = block(self.pool(x))
        x = self._transform(x)
        for up, merge, skip in zip(reversed(self.up), reversed(self.merge), reversed(skips), strict=True):
            x = merge(torch.cat([up(x), skip], dim=1))
        return self.head(x)

    def _transform(self, x: Tensor) -> Tensor:
        """The transformer over pixels as tokens."""
        batch, channels, height, width = x.shape
        tokens = self.transformer(x.reshape(batch, channels, height * width).transpose(1, 2))
        return tokens.transpose(1, 2).reshape(batch, channels, height, width)

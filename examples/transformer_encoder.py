# SPDX-License-Identifier: Apache-2.0
"""A two-layer transformer encoder (Vaswani et al., 2017): attention, softmax, layer norm and GELU.

Input: [1, 16, 64], 16 embedded tokens. Output: [1, 16, 64]. Four heads, feed-forward width 128, layer norm
first; the sizes are ours. 1,114,112 MACs, 67,072 parameters. Weights are random (fixed seed).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples._weights import seeded


class _Attention(nn.Module):
    """Multi-head self-attention without mask, written out so that the graph shows its operators."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        query, key, value = (
            layer(x).reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class _Layer(nn.Module):
    """Attention and feed-forward, each after a layer norm and added to its input."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = _Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class TransformerEncoder(nn.Module):
    """Two layers and a final layer norm."""

    def __init__(self, width: int = 64, heads: int = 4, hidden: int = 128, layers: int = 2) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(_Layer(width, heads, hidden) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 16, 64] -> [N, 16, 64]."""
        return self.norm(self.layers(x))


_INPUT = torch.randn(1, 16, 64, generator=torch.Generator().manual_seed(1))

ModelUnderTest = seeded(TransformerEncoder(), _INPUT, seed=0)
ModelInputs = (_INPUT,)

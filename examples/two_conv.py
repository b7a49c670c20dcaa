# SPDX-License-Identifier: Apache-2.0
"""Two convolutions with a ReLU between: the smallest model that is worth compiling.

Shape: our own toy. Input [1, 3, 16, 16], output [1, 8, 14, 14]. 168,192 MACs, 808 parameters.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from examples._weights import seeded


class TwoConv(nn.Module):
    """3x3 convolution (3 to 8, padded), ReLU, 3x3 convolution (8 to 8, valid)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3)

    def forward(self, x: Tensor) -> Tensor:
        """[1, 3, 16, 16] -> [1, 8, 14, 14]."""
        return self.second(torch.relu(self.first(x)))


_INPUT = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(1))

ModelUnderTest = seeded(TwoConv(), _INPUT, seed=0)
ModelInputs = (_INPUT,)

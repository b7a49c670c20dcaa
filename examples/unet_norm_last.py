# SPDX-License-Identifier: Apache-2.0
"""The UNet of unet.py with each batch norm after the activation, where no convolution can take it in.

Input: [1, 3, 96, 96], RGB. Output: [1, 1, 96, 96], the score of the foreground at each pixel. 57,507,840 MACs
without the normalisations, 29,625 parameters. Weights are random (fixed seed).
"""

from __future__ import annotations

import torch

from examples._weights import seeded
from examples.unet import Preprocessing as Preprocessing
from examples.unet import UNet

_BATCH = torch.rand(4, 3, 96, 96, generator=torch.Generator().manual_seed(1)) * 2 - 1

ModelUnderTest = seeded(UNet(norm_last=True), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

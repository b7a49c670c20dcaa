# SPDX-License-Identifier: Apache-2.0
"""A UNet with a transformer at its bottom for 512 x 512 images, of the size of SqueezeSAM on a phone.

Input: [1, 3, 512, 512], RGB. Output: [1, 1, 512, 512], a score for each pixel. 26,234,322,944 MACs,
9,899,369 parameters.
Weights are random (fixed seed). The architecture is in _conv_transformer_unet.py, its small form in
unet_small.py.
"""

from __future__ import annotations

import torch

from examples._conv_transformer_unet import ConvTransformerUNet
from examples._weights import seeded
from report.preprocess import ImagePreprocessing

Preprocessing = ImagePreprocessing(512, 512, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))

_GENERATOR = torch.Generator().manual_seed(1)
_BATCH = torch.rand(2, 3, 64, 64, generator=_GENERATOR) * 2 - 1  # the network takes any multiple of 16

ModelUnderTest = seeded(ConvTransformerUNet((24, 48, 96, 192, 400), layers=4, heads=8), _BATCH, seed=0)
ModelInputs = (torch.rand(1, 3, 512, 512, generator=_GENERATOR) * 2 - 1,)

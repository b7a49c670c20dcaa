# SPDX-License-Identifier: Apache-2.0
"""A UNet with a transformer at its bottom for 64 x 64 images, the small form of conv_transformer_unet.

Input: [1, 3, 64, 64], RGB. Output: [1, 1, 64, 64], a score for each pixel. 12,742,656 MACs, 50,885
parameters. Weights are random (fixed seed).
"""

from __future__ import annotations

import torch

from examples._conv_transformer_unet import ConvTransformerUNet
from examples._weights import seeded
from report.preprocess import ImagePreprocessing

Preprocessing = ImagePreprocessing(64, 64, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))

_BATCH = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(1)) * 2 - 1

ModelUnderTest = seeded(ConvTransformerUNet((8, 12, 16, 24, 32), layers=1, heads=2), _BATCH, seed=0)
ModelInputs = (_BATCH[:1].clone(),)

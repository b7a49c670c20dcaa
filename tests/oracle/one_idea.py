# SPDX-License-Identifier: Apache-2.0
"""One-idea models: each is the smallest network that makes Vela emit one thing that an NPU must get right.

`MODELS` maps a name to a module factory and its input shapes (NCHW, as in PyTorch).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Indices:
    """An integer input: shape and exclusive upper limit of its values."""

    shape: Shape
    limit: int


@dataclass(frozen=True)
class Model:
    """One idea: how to build it and what goes in.

    Attributes:
        bits: width of the activations.
        absent: families ("u5x" for U55 and U65, or "u85") for which the partitioner takes nothing, and why.
        flags: more arguments for Vela.
    """

    build: Callable[[], nn.Module]
    inputs: tuple[Shape | Indices, ...]
    bits: int = 8
    absent: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @property
    def index_limit(self) -> int:
        """Exclusive upper limit of integer inputs (1 when there are none)."""
        return max((spec.limit for spec in self.inputs if isinstance(spec, Indices)), default=1)

    def make(self) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        """The module with seeded weights and one seeded example input per argument."""
        torch.manual_seed(0)
        module = self.build()
        return module.eval(), tuple(_example(spec) for spec in self.inputs)


def _example(spec: Shape | Indices) -> torch.Tensor:
    if isinstance(spec, Indices):
        return torch.randint(spec.limit, spec.shape, dtype=torch.int32)
    return torch.randn(spec)


class Function(nn.Module):
    """A module out of a plain function of tensors."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> object:
        return self.function(*inputs)


class WithConstant(nn.Module):
    """A binary function of the input and one constant tensor."""

    def __init__(self, function: Callable[..., object], *shape: int) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("constant", torch.randn(shape))

    def forward(self, x: torch.Tensor) -> object:
        return self.function(x, self.constant)


class Residual(nn.Module):
    """Two convolutions around which the input is added back."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = _conv(channels, channels, 3, padding=1)
        self.second = _conv(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class Classifier(nn.Module):
    """Features, global average, fully connected."""

    def __init__(self, features: nn.Module, channels: int, classes: int) -> None:
        super().__init__()
        self.features, self.classifier = features, nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def _conv(inputs: int, outputs: int, kernel: int | tuple[int, int], **options: object) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, **options)


def _depthwise(channels: int, kernel: int, multiplier: int = 1, **options: object) -> nn.Conv2d:
    return nn.Conv2d(channels, channels * multiplier, kernel, groups=channels, **options)


def _separable(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    layers = [_depthwise(inputs, 3, padding=1, stride=stride, bias=False), nn.BatchNorm2d(inputs), nn.ReLU()]
    layers += [_conv(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


def _pruned(layer: nn.Conv2d) -> nn.Conv2d:
    """2:4 sparsity along the input channels: of each four weights the two smallest become zero."""
    with torch.no_grad():
        weight = layer.weight.permute(0, 2, 3, 1)
        groups = weight.reshape(*weight.shape[:3], -1, 4)
        smallest = groups.abs().argsort(-1)[..., :2]
        groups = groups.scatter(-1, smallest, 0.0)
        layer.weight.copy_(groups.reshape(weight.shape).permute(0, 3, 1, 2))
    return layer


def _of(build: Callable[[], nn.Module], *inputs: Shape | Indices, bits: int = 8, **absent: str) -> Model:
    return Model(build, inputs, bits, absent)


def _function(
    function: Callable[..., object], *inputs: Shape | Indices, bits: int = 8, **absent: str
) -> Model:
    return Model(lambda: Function(function), inputs, bits, absent)


_IMAGE = (1, 8, 12, 14)
_ROW = (1, 24, 10, 9)
_DEEP = (1, 64, 10, 10)

_CONVOLUTIONS = {
    # U55 and U65 take a shallow input part-kernel first and a deep one depth first, U85 only 1x1 depth first.
    "conv3x3_shallow": _of(lambda: _conv(3, 16, 3, padding=1), (1, 3, 16, 16)),
    "conv3x3_deep": _of(lambda: _conv(64, 48, 3, padding=1), _DEEP),
    "conv1x1": _of(lambda: _conv(16, 24, 1), (1, 16, 8, 8)),
    "conv1x1_wide": _of(lambda: _conv(160, 200, 1), (1, 160, 5, 6)),
    "conv3x3_wide": _of(lambda: _conv(160, 200, 3), (1, 160, 6, 6)),
    "conv3x3_stride2_shallow": _of(lambda: _conv(3, 20, 3, stride=2, padding=1), (1, 3, 17, 17)),
    "conv3x3_stride2_deep": _of(lambda: _conv(64, 32, 3, stride=2, padding=1), (1, 64, 11, 13)),
    "conv3x3_stride3": _of(lambda: _conv(16, 24, 3, stride=3), (1, 16, 16, 15)),
    "conv3x3_stride1x2": _of(lambda: _conv(16, 24, 3, stride=(1, 2), padding=1), (1, 16, 9, 12)),
    "conv3x3_stride2x1": _of(lambda: _conv(40, 24, 3, stride=(2, 1), padding=1), (1, 40, 9, 12)),
    "conv5x5_stride4": _of(lambda: _conv(8, 16, 5, stride=4), (1, 8, 21, 25)),
    "conv7x7_stride5x6": _of(lambda: _conv(8, 16, 7, stride=(5, 6)), (1, 8, 27, 31)),
    "conv1x1_stride2": _of(lambda: _conv(24, 16, 1, stride=2), (1, 24, 9, 9)),
    "conv3x3_dilated": _of(lambda: _conv(16, 24, 3, dilation=2, padding=2), (1, 16, 12, 12)),
    "conv3x3_dilated_deep": _of(lambda: _conv(64, 24, 3, dilation=2), _DEEP),
    "conv3x3_dilated3x1": _of(lambda: _conv(8, 16, 3, dilation=(3, 1)), (1, 8, 14, 9)),
    "conv3x3_asymmetric_padding": _of(
        lambda: nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), _conv(8, 16, 3, stride=2)), (1, 8, 16, 16)
    ),
    "conv5x5": _of(lambda: _conv(12, 20, 5, padding=2), (1, 12, 11, 11)),
    "conv5x5_stride2": _of(lambda: _conv(3, 24, 5, stride=2, padding=2), (1, 3, 20, 20)),
    # More than 8x8 taps: several sub-kernels.
    "conv11x11": _of(lambda: _conv(3, 16, 11, stride=2, padding=5), (1, 3, 25, 25)),
    "conv9x9_deep": _of(lambda: _conv(32, 8, 9, padding=4), (1, 32, 10, 10)),
    "conv1x7": _of(lambda: _conv(16, 16, (1, 7), padding=(0, 3)), (1, 16, 7, 15)),
    "conv7x1": _of(lambda: _conv(16, 16, (7, 1), padding=(3, 0)), (1, 16, 15, 7)),
    "conv_grouped": _of(lambda: _conv(16, 24, 3, groups=4, padding=1), (1, 16, 8, 8)),
    "conv_no_bias": _of(lambda: _conv(16, 16, 3, bias=False), (1, 16, 8, 8)),
    "conv1d": _of(lambda: nn.Conv1d(8, 16, 5, stride=2, padding=2), (1, 8, 40)),
    "conv_batch_norm_relu": _of(
        lambda: nn.Sequential(_conv(8, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU()), _IMAGE
    ),
    "conv_sparse3x3": _of(lambda: _pruned(_conv(64, 32, 3, padding=1)), _DEEP),
    "conv_sparse1x1": _of(lambda: _pruned(_conv(128, 64, 1)), (1, 128, 8, 8)),
    "conv_transpose2x2": _of(lambda: nn.ConvTranspose2d(16, 8, 2, stride=2), (1, 16, 6, 6)),
    "conv_transpose3x3": _of(
        lambda: nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1), (1, 16, 6, 6)
    ),
    "depthwise3x3": _of(lambda: _depthwise(16, 3, padding=1), (1, 16, 12, 12)),
    "depthwise3x3_wide": _of(lambda: _depthwise(72, 3, padding=1), (1, 72, 7, 9)),
    "depthwise3x3_stride2": _of(lambda: _depthwise(24, 3, stride=2, padding=1), _ROW),
    "depthwise5x5_stride2": _of(lambda: _depthwise(40, 5, stride=2, padding=2), (1, 40, 15, 15)),
    "depthwise3x3_dilated": _of(lambda: _depthwise(16, 3, dilation=2, padding=2), (1, 16, 12, 12)),
    "depthwise3x3_multiplier": _of(lambda: _depthwise(4, 3, multiplier=3, padding=1), (1, 4, 9, 9)),
    "depthwise_single_multiplier": _of(lambda: _depthwise(1, 3, multiplier=8), (1, 1, 9, 9)),
    "linear": _of(lambda: nn.Linear(300, 120), (1, 300)),
    "linear_batch": _of(lambda: nn.Linear(40, 24), (6, 40)),
    "linear_sequence": _of(lambda: nn.Linear(32, 48), (1, 7, 32)),
    "bmm": _function(torch.bmm, (2, 9, 24), (2, 24, 17)),
    "matmul": _function(torch.matmul, (1, 3, 8, 12), (1, 3, 12, 10)),
}

_POOLS = {
    "max_pool": _of(lambda: nn.MaxPool2d(2), (1, 8, 12, 12)),
    "max_pool_padded": _of(lambda: nn.MaxPool2d(3, stride=2, padding=1), (1, 20, 13, 13)),
    "max_pool_stride1": _of(lambda: nn.MaxPool2d((3, 2), stride=1), _IMAGE),
    "avg_pool": _of(lambda: nn.AvgPool2d(2), (1, 8, 12, 12)),
    "avg_pool_padded": _of(lambda: nn.AvgPool2d(3, stride=2, padding=1), (1, 20, 13, 13)),
    "avg_pool_excluding_pad": _of(
        lambda: nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False), (1, 20, 7, 7)
    ),
    "avg_pool12x12": _of(lambda: nn.AvgPool2d(12, stride=1), (1, 16, 15, 14)),
    "global_avg_pool": _of(lambda: nn.AdaptiveAvgPool2d(1), (1, 20, 9, 7)),
    "mean_hw": _function(lambda x: x.mean((2, 3)), (1, 24, 6, 6)),
    "mean_channel": _function(lambda x: x.mean(1, keepdim=True), _IMAGE),
    "sum_width": _function(lambda x: x.sum(3), _IMAGE),
    "sum_channel": _function(lambda x: x.sum(1, keepdim=True), _IMAGE),
    "amax_height": _function(lambda x: x.amax(2, keepdim=True), _IMAGE),
    "amax_channel": _function(lambda x: x.amax(1), _IMAGE),
    "amin_width": _function(lambda x: x.amin(3, keepdim=True), _IMAGE),
}

_ELEMENTWISE = {
    "add": _function(lambda x, y: x + y, _IMAGE, _IMAGE),
    "add_broadcast_channel": _function(lambda x, y: x + y, _IMAGE, (1, 1, 12, 14)),
    "add_broadcast_height": _function(lambda x, y: x + y, _IMAGE, (1, 8, 1, 14)),
    "add_broadcast_width": _function(lambda x, y: x + y, (1, 8, 12, 1), _IMAGE),
    "add_per_channel": _function(lambda x, y: x + y, _IMAGE, (1, 8, 1, 1)),
    "add_broadcast_both": _function(lambda x, y: x + y, (1, 8, 12, 1), (1, 1, 12, 14)),
    "add_scalar": _function(lambda x: x + 1.5, _IMAGE),
    "add_constant": _of(lambda: WithConstant(torch.add, 1, 8, 12, 14), _IMAGE),
    "add_itself": _function(lambda x: x + x, _IMAGE),
    "sub": _function(lambda x, y: x - y, _IMAGE, _IMAGE),
    "sub_from_scalar": _function(lambda x: 1.0 - x, _IMAGE),
    "sub_broadcast_width": _function(lambda x, y: x - y, (1, 8, 12, 1), _IMAGE),
    "mul": _function(lambda x, y: x * y, _IMAGE, _IMAGE),
    "mul_per_channel": _function(lambda x, y: x * y, _IMAGE, (1, 8, 1, 1)),
    "mul_scalar": _function(lambda x: x * 0.37, _IMAGE),
    "mul_constant": _of(lambda: WithConstant(torch.mul, 1, 8, 1, 1), _IMAGE),
    "div": _function(lambda x, y: x / (y.abs() + 1.0), _IMAGE, _IMAGE),
    "abs": _function(torch.abs, _IMAGE),
    "neg": _function(torch.neg, _IMAGE),
    "maximum": _function(torch.maximum, _IMAGE, _IMAGE),
    "minimum": _function(torch.minimum, _IMAGE, _IMAGE),
    "maximum_broadcast": _function(torch.maximum, _IMAGE, (1, 8, 1, 1)),
}

_ACTIVATIONS = {
    "relu": _of(nn.ReLU, _IMAGE),
    "conv_relu6": _of(lambda: nn.Sequential(_conv(8, 16, 3), nn.ReLU6()), (1, 8, 12, 12)),
    "relu6": _of(nn.ReLU6, _IMAGE),
    "clamp": _function(lambda x: x.clamp(-0.7, 1.1), _IMAGE),
    "hardtanh": _of(nn.Hardtanh, _IMAGE),
    "leaky_relu": _of(lambda: nn.LeakyReLU(0.1), _IMAGE),
    "hardswish": _of(nn.Hardswish, _IMAGE),
    "hardsigmoid": _of(nn.Hardsigmoid, _IMAGE),
    "sigmoid": _of(nn.Sigmoid, _IMAGE),
    "tanh": _of(nn.Tanh, _IMAGE),
    "gelu": _of(nn.GELU, _IMAGE),
    "silu": _of(nn.SiLU, _IMAGE),
    "elu": _of(nn.ELU, _IMAGE),
    "exp": _function(torch.exp, _IMAGE),
    "log": _function(lambda x: torch.log(x.abs() + 0.1), _IMAGE),
    "sqrt": _function(lambda x: torch.sqrt(x.abs()), _IMAGE),
    "rsqrt": _function(lambda x: torch.rsqrt(x.abs() + 0.1), _IMAGE),
    # For U55-32 and U55-64 Vela 5.1.0 loads this table to the byte after the shared RAM (npu/execution.py).
    "conv_sigmoid": _of(lambda: nn.Sequential(_conv(8, 16, 3), nn.Sigmoid()), _IMAGE),
    "softmax": _of(lambda: nn.Softmax(-1), (1, 6, 20)),
    "softmax_channel": _of(lambda: nn.Softmax(1), (1, 10, 4, 4)),
    "layer_norm": _of(lambda: nn.LayerNorm(32), (1, 6, 32)),
    "batch_norm": _of(lambda: nn.BatchNorm2d(8), _IMAGE),
}

_DATA = {
    "concat_channel": _function(lambda x, y: torch.cat((x, y), 1), _IMAGE, (1, 5, 12, 14)),
    "concat_height": _function(lambda x, y: torch.cat((x, y), 2), _IMAGE, (1, 8, 3, 14)),
    "concat_width": _function(lambda x, y: torch.cat((x, y), 3), _IMAGE, (1, 8, 12, 5)),
    "split": _function(lambda x: torch.split(x, 4, 1), _IMAGE),
    "pad_constant": _function(lambda x: F.pad(x, (1, 2, 3, 1), value=0.5), _IMAGE),
    "pad_channel": _function(lambda x: F.pad(x, (0, 0, 0, 0, 2, 3)), _IMAGE),
    "slice": _function(lambda x: x[:, 2:7, 1:11, 3:12], _IMAGE),
    "slice_step": _function(lambda x: x[:, :, ::2, 1::3], _IMAGE),
    "flip_width": _function(lambda x: x.flip(3), _IMAGE, u5x="only height and channel are reversed"),
    "flip_height": _function(lambda x: x.flip(2), _IMAGE),
    "flip_channel": _function(lambda x: x.flip(1), _IMAGE),
    "flip_height_channel": _function(lambda x: x.flip((1, 2)), _IMAGE, u5x="only one axis is reversed"),
    "permute_nhwc": _function(lambda x: x.permute(0, 2, 3, 1), _IMAGE),
    "permute_hw": _function(lambda x: x.permute(0, 1, 3, 2), _IMAGE),
    "permute_channel_width": _function(lambda x: x.permute(0, 3, 2, 1), _IMAGE),
    "reshape": _function(lambda x: (x + 1.0).reshape(1, 12, 8, 14), _IMAGE),
    "upsample_nearest": _of(lambda: nn.Upsample(scale_factor=2, mode="nearest"), (1, 8, 6, 7)),
    "upsample_nearest3": _of(
        lambda: nn.Upsample(scale_factor=3, mode="nearest"),
        (1, 8, 4, 5),
        u5x="nearest upscaling is by 2, 4 or 8",
    ),
    "upsample_bilinear": _of(
        lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
        (1, 8, 6, 7),
        u5x="no RESIZE",
    ),
    "upsample_bilinear_corners": _of(
        lambda: nn.Upsample(size=(11, 13), mode="bilinear", align_corners=True),
        (1, 8, 6, 7),
        u5x="no RESIZE",
    ),
    "embedding": _of(lambda: nn.Embedding(50, 16), Indices((1, 9), 50), u5x="no GATHER"),
    "repeat": _function(lambda x: x.repeat(1, 2, 1, 3), (1, 4, 5, 6)),
    "where": _function(lambda x, y: torch.where(x > y, x, y), _IMAGE, _IMAGE, u5x="no GREATER, no SELECT"),
}

_INT16 = {
    "int16_conv3x3": _of(lambda: _conv(8, 16, 3, padding=1), _IMAGE, bits=16),
    "int16_conv3x3_deep": _of(lambda: _conv(64, 24, 3, stride=2, padding=1), _DEEP, bits=16),
    "int16_depthwise": _of(lambda: _depthwise(16, 3, padding=1), (1, 16, 9, 9), bits=16),
    "int16_linear": _of(lambda: nn.Linear(64, 40), (1, 64), bits=16),
    "int16_add": _function(lambda x, y: x + y, _IMAGE, _IMAGE, bits=16),
    "int16_mul": _function(lambda x, y: x * y, _IMAGE, _IMAGE, bits=16),
    "int16_sigmoid": _of(nn.Sigmoid, _IMAGE, bits=16),
    "int16_softmax": _of(lambda: nn.Softmax(-1), (1, 6, 20), bits=16),
    "int16_avg_pool": _of(lambda: nn.AvgPool2d(2), _IMAGE, bits=16),
}

_NETWORKS = {
    "residual_block": _of(lambda: Residual(16), (1, 16, 12, 12)),
    "separable_block": _of(lambda: _separable(16, 24, stride=2), (1, 16, 12, 12)),
    "ds_cnn": _of(
        lambda: Classifier(
            nn.Sequential(
                _conv(1, 32, (10, 4), stride=2, padding=(5, 1)),
                nn.ReLU(),
                _separable(32, 32),
                _separable(32, 32),
            ),
            32,
            12,
        ),
        (1, 1, 49, 10),
    ),
    # Feature maps of 256 KiB and a small arena: U55 and U65 go in stripes through rolling buffers.
    "cascade": Model(
        lambda: nn.Sequential(
            _conv(3, 16, 3, padding=1),
            nn.ReLU(),
            _conv(16, 16, 3, padding=1),
            nn.ReLU(),
            _conv(16, 4, 3, padding=1),
        ),
        ((1, 3, 128, 128),),
        flags=("--arena-cache-size=100000",),
    ),
    "four_inputs": _function(lambda a, b, c, d: (a + b) * (c - d), _IMAGE, _IMAGE, _IMAGE, _IMAGE),
    "three_outputs": _function(lambda x: (x + 1.0, torch.relu(x), x.mean((2, 3))), _IMAGE),
    "tanh_times_sigmoid": _function(lambda x: torch.tanh(x) * torch.sigmoid(x), _IMAGE),
}

MODELS: dict[str, Model] = {
    **_CONVOLUTIONS,
    **_POOLS,
    **_ELEMENTWISE,
    **_ACTIVATIONS,
    **_DATA,
    **_INT16,
    **_NETWORKS,
}

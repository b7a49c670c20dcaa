# SPDX-License-Identifier: Apache-2.0
"""An exported fp16 program run with the kernels' sums (`fp16_sums`), its other operators by torch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.nn.utils.fusion import fuse_conv_bn_weights

from fvp.aarch64 import fp16_sums
from fvp.aarch64.fp16_sums import MOST_ELEMENTS, NORMAL, Convolution

_aten = torch.ops.aten
_CONVOLUTIONS = (_aten.conv2d.default, _aten.conv2d.padding, _aten.conv1d.default)
_Kernel = Callable[..., np.ndarray | None]
"""None: torch shall do it."""


class Fp16Kernels(Interpreter):
    """Runs an exported fp16 program with the arithmetic of the kernels.

    A batch norm behind a convolution is folded into its weights, as ExecuTorch does. XNNPACK approximates
    exponentials, and operators outside of it sum in their own order: of these, torch's result stands.

    Args:
        module: of the exported program; it is changed.
        sme: whether the kernels for SME were used, where XNNPACK has them.
    """

    def __init__(self, module: GraphModule, *, sme: bool) -> None:
        _fold_norms(module)
        super().__init__(module)
        self._sme = sme
        self._kernels: Mapping[Any, _Kernel] = {
            _aten.conv2d.default: self._convolution,
            _aten.conv2d.padding: self._convolution_padded,
            _aten.conv1d.default: self._convolution_of_rows,
            _aten.conv_transpose2d.input: self._transposed,
            _aten.linear.default: self._linear,
            _aten.matmul.default: self._product,
            _aten.batch_norm.default: _norm,
        }

    def run_node(self, n: Node) -> Any:
        """The node's value, subnormals flushed."""
        value = super().run_node(n)
        if _is_fp16(value):
            return torch.where(value.abs() < NORMAL, torch.zeros_like(value), value)
        return value

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """By the kernel where there is one, else by torch."""
        if not (args and _is_fp16(args[0])):
            return super().call_function(target, args, kwargs)
        if target in self._kernels:
            arrays = (value.detach().numpy() if isinstance(value, torch.Tensor) else value for value in args)
            result = self._kernels[target](*arrays)
            if result is not None:
                return torch.from_numpy(result)
        # a number beside a tensor becomes a tensor of its type
        rounded = (float(np.float16(value)) if isinstance(value, float) else value for value in args)
        return super().call_function(target, tuple(rounded), kwargs)

    def _convolution(
        self, image: np.ndarray, weights: np.ndarray, bias: np.ndarray | None = None, *how: Any
    ) -> np.ndarray | None:
        depthwise = len(weights) == image.shape[1] and weights.shape[1] == 1
        if depthwise and weights[0].size > MOST_ELEMENTS:
            return None
        shape = Convolution.of(*how)
        return fp16_sums.convolution(image, weights, _bias(bias, len(weights)), shape, sme=self._sme)

    def _convolution_padded(
        self,
        image: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray | None = None,
        stride: Sequence[int] = (1, 1),
        padding: str = "valid",
        dilation: Sequence[int] = (1, 1),
        groups: int = 1,
    ) -> np.ndarray | None:
        """``padding="same"``: of an odd amount, the larger part is behind."""
        amounts = [
            gap * (length - 1) * (padding == "same")
            for gap, length in zip(fp16_sums.pair(dilation), weights.shape[2:], strict=True)
        ]
        edges = [(amount // 2, amount - amount // 2) for amount in amounts]
        padded = np.pad(image, ((0, 0), (0, 0), *edges))
        return self._convolution(padded, weights, bias, stride, (0, 0), dilation, groups)

    def _convolution_of_rows(
        self,
        rows: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray | None = None,
        stride: Sequence[int] = (1,),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        groups: int = 1,
    ) -> np.ndarray | None:
        """conv1d: XNNPACK sees images that are one place wide."""
        axes = (*stride, 1), (*padding, 0), (*dilation, 1)
        out = self._convolution(rows[..., None], weights[..., None], bias, *axes, groups)
        return None if out is None else out[..., 0]

    def _transposed(
        self,
        image: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray | None = None,
        stride: Sequence[int] = (1, 1),
        padding: Sequence[int] = (0, 0),
        output_padding: Sequence[int] = (0, 0),
        groups: int = 1,
        dilation: Sequence[int] = (1, 1),
    ) -> np.ndarray | None:
        if groups != 1:
            return None
        how, extra = Convolution.of(stride, padding, dilation), fp16_sums.pair(output_padding)
        return fp16_sums.transposed_convolution(image, weights, _bias(bias, weights.shape[1]), how, extra)

    def _linear(self, rows: np.ndarray, weights: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        return fp16_sums.linear(rows, weights, _bias(bias, len(weights)), sme=self._sme)

    def _product(self, left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
        if min(left.ndim, right.ndim) < 2:
            return None
        return fp16_sums.product(left, right, sme=self._sme)


def _norm(image: np.ndarray, *arguments: Any) -> np.ndarray | None:
    """A batch norm that is not folded: ExecuTorch makes it a depthwise convolution of 1x1."""
    from executorch.backends.xnnpack._passes.decompose_batch_norm import DecomposeBatchNorm

    if image.ndim != 4:
        return None
    scale, shift, mean, variance = (
        None if value is None else torch.from_numpy(value) for value in arguments[:4]
    )
    weights, bias = DecomposeBatchNorm.compute_w_and_b(arguments[6], mean, variance, scale, shift)
    how = Convolution.of(groups=len(bias))
    return fp16_sums.convolution(image, weights.numpy()[:, None, None, None], bias.numpy(), how, sme=False)


def _is_fp16(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.float16


def _bias(bias: np.ndarray | None, channels: int) -> np.ndarray:
    return np.zeros(channels, np.float16) if bias is None else bias


def _fold_norms(module: GraphModule) -> None:
    """Fold each batch norm that alone reads a convolution into the convolution's weights."""
    for node in list(module.graph.nodes):
        norm = _only_norm(node)
        if norm is None:
            continue
        with module.graph.inserting_before(node):
            for index, value in enumerate(_folded(module, node, norm), 1):
                name = f"{node.name}_folded_{index}"
                module.register_buffer(name, value.detach())
                node.args = (*node.args[:index], module.graph.get_attr(name), *node.args[index + 1 :])
        norm.replace_all_uses_with(node)
        module.graph.erase_node(norm)
    module.recompile()


def _folded(module: GraphModule, convolution: Node, norm: Node) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight and bias with the batch norm in them, in fp16 as ExecuTorch computes them."""
    weight, bias = (_attribute(module, value) for value in (*convolution.args[1:3], None)[:2])
    scale, shift, mean, variance = (_attribute(module, value) for value in norm.args[1:5])
    epsilon: Any = norm.args[7]
    return fuse_conv_bn_weights(weight, bias, mean, variance, epsilon, scale, shift)


def _only_norm(node: Node) -> Node | None:
    """The batch norm that alone reads the convolution `node`, None if `node` is none or others read it."""
    if node.target not in _CONVOLUTIONS or len(node.users) != 1:
        return None
    (user,) = node.users
    return user if user.target is _aten.batch_norm.default else None


def _attribute(module: GraphModule, node: Any) -> Any:
    """The parameter that a graph's node stands for, None for what is no node."""
    return operator.attrgetter(str(node.target))(module) if isinstance(node, Node) else None

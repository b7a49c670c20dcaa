# SPDX-License-Identifier: Apache-2.0
"""Rewrites of an exported program that keep its 4-D tensors in one XNNPACK partition.

Both put a depthwise 1x1 convolution, which XNNPACK takes in every type, in the place of what splits a
partition. They run before quantisation, and change nothing but these operators.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from aot.cortex_a.options import LayoutFix
from aot.fallback import module_path
from aot.hooks import source_line
from aot.models import Model
from aot.quantize import export_module, is_quantized
from report.errors import UsageError

_aten = torch.ops.aten
_CONVOLUTIONS = (
    *(_aten.conv1d.default, _aten.conv2d.default, _aten.conv3d.default),
    *(_aten.conv_transpose1d.default, _aten.conv_transpose2d.input, _aten.convolution.default),
    _aten.linear.default,
)
"""What a normalisation folds into."""

_SIGMOID_SCALE = 1.702
"""GELU(x) is about x * sigmoid(1.702 x): Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016)."""


@dataclass(frozen=True)
class Place:
    """Where in the model an operator is: its module, and ``file.py:12`` of the innermost call."""

    module_path: str
    line: str


@dataclass(frozen=True)
class Rewrite:
    """What one pass has done.

    Attributes:
        name: of the pass.
        replaced: the operators in whose place the new ones are.
        error: the outputs' largest difference on the example input, computed by torch in the model's type,
            as a part of the largest output; None when nothing was replaced.
    """

    name: str
    replaced: tuple[Place, ...]
    error: float | None


def unfolded_norms(program: ExportedProgram) -> tuple[Place, ...]:
    """The normalisations with fixed statistics that no convolution takes in, because none is before them."""
    return tuple(map(_place, filter(_is_unfolded_norm, program.graph.nodes)))


def fix(
    program: ExportedProgram, model: Model, wanted: LayoutFix, *, strict: bool
) -> tuple[ExportedProgram, tuple[Rewrite, ...]]:
    """`program` after the passes that are `wanted`, and what they have done.

    Raises:
        UsageError: the program is quantised already.
        CompileError: torch.export cannot trace the result.
    """
    if not wanted:
        return program, ()
    if is_quantized(program):
        hint = "give the float model, with --dtype int8"
        raise UsageError("the program is quantised already", where="--fix-layout", hint=hint)
    rewrites = []
    for one, apply in ((LayoutFix.NORM, _replace_norms), (LayoutFix.GELU, _replace_gelus)):
        if one in wanted:
            program, rewrite = _rewritten(program, model, _TITLES[one], apply, strict=strict)
            rewrites.append(rewrite)
    return program, tuple(rewrites)


_TITLES = {
    LayoutFix.NORM: "normalisation as depthwise 1x1 convolution",
    LayoutFix.GELU: "GELU as x * sigmoid(1.702 x)",
}


def _rewritten(
    program: ExportedProgram,
    model: Model,
    title: str,
    apply: Callable[[GraphModule], list[Place]],
    *,
    strict: bool,
) -> tuple[ExportedProgram, Rewrite]:
    module = program.module(check_guards=False)
    assert isinstance(module, GraphModule)
    before = _outputs(module, model)
    replaced = apply(module)
    if not replaced:
        return program, Rewrite(title, (), None)
    module.graph.eliminate_dead_code()
    module.recompile()
    error = _difference(before, _outputs(module, model))
    return export_module(module, model, strict=strict), Rewrite(title, tuple(replaced), error)


def _outputs(module: GraphModule, model: Model) -> list[Tensor]:
    with torch.no_grad():
        return [value.double() for value in tree_leaves(module(*model.inputs, **model.kwargs))]


def _difference(before: list[Tensor], after: list[Tensor]) -> float:
    """The largest difference as a part of the largest value, over all outputs."""
    differences = [float((a - b).abs().max()) for a, b in zip(after, before, strict=True)]
    largest = [float(b.abs().max()) for b in before]
    return max(d / (value or 1.0) for d, value in zip(differences, largest, strict=True))


def _place(node: Node) -> Place:
    return Place(module_path(node), source_line(node))


def _is_unfolded_norm(node: Node) -> bool:
    """A batch norm of a 4-D tensor with fixed statistics, whose input no convolution makes for it alone."""
    if node.target is not _aten.batch_norm.default:
        return False
    tensor, _, _, mean, variance, training = node.args[:6]
    assert isinstance(tensor, Node)
    fixed = isinstance(mean, Node) and isinstance(variance, Node) and training is False
    folds = tensor.target in _CONVOLUTIONS and len(tensor.users) == 1
    return fixed and not folds and _value(tensor).dim() == 4


def _value(node: Node) -> Tensor:
    value = node.meta["val"]
    assert isinstance(value, Tensor)
    return value


def _replace_norms(module: GraphModule) -> list[Place]:
    """Batch norm with fixed statistics is ``x * g / sqrt(v + e) + (b - m * g / sqrt(v + e))`` by channel.

    The factors are computed in double precision and rounded once.
    """
    places = []
    for node in list(filter(_is_unfolded_norm, module.graph.nodes)):
        tensor, gamma, beta, mean, variance = node.args[:5]
        m, v = (_parameter(module, n) for n in (mean, variance))
        scale = (v + float(node.args[7])).rsqrt() * (1.0 if gamma is None else _parameter(module, gamma))
        shift = (0.0 if beta is None else _parameter(module, beta)) - m * scale
        with module.graph.inserting_before(node):
            _substitute(node, _depthwise(module, node, tensor, scale, shift))
        places.append(_place(node))
    return places


def _replace_gelus(module: GraphModule) -> list[Place]:
    """GELU in fp16, which XNNPACK does not have, by a sigmoid, which it has."""
    places = []
    for node in list(module.graph.nodes):
        if node.target is not _aten.gelu.default or _value(node).dtype is not torch.float16:
            continue
        tensor = node.args[0]
        with module.graph.inserting_before(node):
            scaled = _scaled(module, node, tensor)
            gate = _call(node, _aten.sigmoid.default, (scaled,))
            _substitute(node, _call(node, _aten.mul.Tensor, (tensor, gate)))
        places.append(_place(node))
    return places


def _scaled(module: GraphModule, node: Node, tensor: Node) -> Node:
    """``1.702 x``: a depthwise convolution for 4-D tensors, as a constant factor would be channels first."""
    shape = _value(tensor).shape
    if len(shape) == 4:
        factors = torch.full((shape[1],), _SIGMOID_SCALE, dtype=torch.float64)
        return _depthwise(module, node, tensor, factors, torch.zeros_like(factors))
    factor = torch.full((1,), _SIGMOID_SCALE)
    return _call(node, _aten.mul.Tensor, (tensor, _constant(module, node, "factor", factor)))


def _depthwise(module: GraphModule, node: Node, tensor: Any, scale: Tensor, shift: Tensor) -> Node:
    """``x * scale + shift`` by channel as a depthwise 1x1 convolution, at the insertion point."""
    weight = _constant(module, node, "scale", scale.reshape(-1, 1, 1, 1))
    bias = _constant(module, node, "shift", shift)
    geometry = ([1, 1], [0, 0], [1, 1])  # stride, padding, dilation
    return _call(node, _aten.conv2d.default, (tensor, weight, bias, *geometry, scale.numel()))


def _call(origin: Node, target: Any, args: tuple[Any, ...]) -> Node:
    """A new operator that says of itself that it comes from where `origin` does."""
    node = origin.graph.call_function(target, args)
    kept = ("nn_module_stack", "stack_trace", "source_fn_stack", "torch_fn", "from_node")
    node.meta = {key: origin.meta[key] for key in kept if key in origin.meta}
    return node


def _constant(module: GraphModule, node: Node, what: str, value: Tensor) -> Node:
    """`value` as a buffer of the type that `node` computes in."""
    name = f"{node.name}_{what}"
    module.register_buffer(name, value.to(_value(node).dtype))
    return node.graph.get_attr(name)


def _parameter(module: GraphModule, node: Any) -> Tensor:
    value = operator.attrgetter(node.target)(module)
    return value.detach().double()


def _substitute(node: Node, new: Node) -> None:
    new.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)


def places_json(places: Iterable[Place]) -> Iterator[dict[str, str]]:
    """Each place, JSON-ready."""
    return ({"module_path": place.module_path, "line": place.line} for place in places)

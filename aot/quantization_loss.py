# SPDX-License-Identifier: Apache-2.0
"""What quantisation costs, layer by layer: the float model beside the quantised one on the same input.

Compared is every tensor that the quantised model stores: the value behind its quantise and dequantise
operators against the float value of the same node, batch normalisation already folded into it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from aot.fallback import is_dequantize, is_quantize, module_path
from aot.hooks import root_name, source_line


@dataclass(frozen=True)
class LayerLoss:
    """One stored tensor.

    Attributes:
        node: the node of the exported model that computes it; `nodes` are all that are computed on the way
            from stored tensors to it.
        sqnr_db: 20 log10(|float| / |float - quantised|); None where either is zero or infinite.
        cosine: of the angle between both as vectors; None likewise.
        largest_error: of any element, 0.0 where both are equal; None where a float value is infinite.
    """

    node: str
    nodes: tuple[str, ...]
    operator: str
    module_path: str
    line: str
    sqnr_db: float | None
    cosine: float | None
    largest_error: float | None


def float_values(prepared: GraphModule, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a module's nodes by name, observers passed by: neither used nor fed."""
    return _values(prepared, inputs, kwargs)


def layer_losses(
    quantized: GraphModule, floats: Mapping[str, Any], inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[LayerLoss, ...]:
    """Every stored tensor of `quantized`, in order of execution.

    Args:
        floats: what `float_values` found in the module that `quantized` was converted from.
    """
    values = _values(quantized, inputs, kwargs)
    return tuple(
        _loss(node, floats[node.name], values[stored.name]) for node, stored in _stored_tensors(quantized)
    )


class _Recorder(Interpreter):
    """Keeps all tensors; a module called from an exported graph is an observer, and is passed by."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, Any] = {}

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        return args[0]

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, torch.Tensor) and n.op != "get_attr":
            self.values[n.name] = result
        return result


def _values(module: GraphModule, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    recorder = _Recorder(module)
    with torch.no_grad():
        recorder.run(*torch.utils._pytree.tree_leaves((tuple(inputs), dict(kwargs))))
    return recorder.values


def _stored_tensors(module: GraphModule) -> Iterator[tuple[Node, Node]]:
    """(node that computes a tensor, node with its value after quantisation); constants are left out."""
    seen: set[Node] = set()
    for quantise in filter(is_quantize, module.graph.nodes):
        source = quantise.args[0]
        stored = next(filter(is_dequantize, quantise.users), None)
        if stored is not None and source.op != "get_attr" and source not in seen:
            seen.add(source)
            yield source, stored


def _loss(node: Node, exact: torch.Tensor, stored: torch.Tensor) -> LayerLoss:
    wanted, got = (tensor.double().reshape(-1) for tensor in (exact, stored))
    signal, size, noise = (float(vector.norm()) for vector in (wanted, got, wanted - got))
    return LayerLoss(
        node=root_name(node),
        nodes=tuple(root_name(part) for part in _computed_with(node)),
        operator="input" if node.op == "placeholder" else str(node.target).removeprefix("aten."),
        module_path=module_path(node),
        line=source_line(node),
        sqnr_db=20 * math.log10(signal / noise) if _usable(signal, noise) else None,
        cosine=float(wanted @ got) / (signal * size) if _usable(signal, size) else None,
        largest_error=float((wanted - got).abs().max()) if math.isfinite(noise) else None,
    )


def _computed_with(node: Node) -> list[Node]:
    """The node and those before it up to stored tensors, inputs and constants."""
    found, waiting = [node], [node]
    while waiting:
        for source in waiting.pop().all_input_nodes:
            if source.op == "call_function" and not is_dequantize(source) and source not in found:
                found.append(source)
                waiting.append(source)
    return found


def _usable(a: float, b: float) -> bool:
    return 0 < a < math.inf and 0 < b < math.inf

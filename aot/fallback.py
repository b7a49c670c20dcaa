# SPDX-License-Identifier: Apache-2.0
"""Where each operator of a lowered program runs, and why it is not on the NPU when it is not.

Quantise and dequantise operators at the edge of a delegate are the price of a float interface, not a
fallback; they are listed apart with their scale and zero point. `getitem` and memory operators do no work and
are not listed.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

_TAG = "armdeploy_id"
"""Key in a node's metadata, which survives ExecuTorch's passes: finds an operator's kernel afterwards."""

_EXPLAINED = {
    "Not included in BaseTOSASupportList or a registered tosa_support_check": (
        "ExecuTorch's Arm backend does not lower this operator"
    )
}
"""Reasons of the partitioner that speak of its own code only, in plain words."""

_QUANTIZE = "quantize_per_"
_DEQUANTIZE = "dequantize_per_"


@dataclass(frozen=True)
class TensorInfo:
    """A tensor at the edge of the program or of a delegate; `dtype` is torch's name without ``torch.``."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class DelegateIo:
    """One delegate: its inputs and outputs in call order, and its operators by name.

    `attribute` is the name under which the graph module holds it.
    """

    attribute: str
    backend: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    operators: Mapping[str, int]


@dataclass(frozen=True)
class CpuOp:
    """An operator that stays on the CPU. `id` finds its kernel in the final program."""

    id: int
    op: str
    name: str
    module_path: str
    reason: str


@dataclass(frozen=True)
class BoundaryOp:
    """A quantise or dequantise between float and integer: ``real = scale * (q - zero_point)``."""

    id: int
    op: str
    name: str
    side: str
    scale: float | None
    zero_point: int | None
    dtype: str


@dataclass(frozen=True)
class Placement:
    """Every operator of a program that does work, by where it runs."""

    delegates: tuple[DelegateIo, ...]
    cpu_ops: tuple[CpuOp, ...]
    boundary_ops: tuple[BoundaryOp, ...]


def placement_of(edge: ExportedProgram, rejected: Mapping[str, str], *, delegate: bool) -> Placement:
    """Read an edge-dialect program after lowering, and tag its CPU operators for `kernels_of`.

    Branches and loops are read as well, except that only delegates of the top-level graph are listed.

    Args:
        rejected: the partitioner's reason by node name.
        delegate: False when nothing was offered to the NPU.
    """
    delegates, cpu_ops, boundary_ops = [], [], []
    inputs = frozenset(edge.graph_signature.user_inputs) if delegate else frozenset()
    for index, node in enumerate(_calls(edge.graph_module)):
        if _is_delegate(node):
            if node.graph is edge.graph_module.graph:
                delegates.append(_delegate_io(edge.graph_module, node))
        elif delegate and _is_boundary(node, inputs):
            node.meta[_TAG] = index
            boundary_ops.append(_boundary_op(index, node))
        else:
            node.meta[_TAG] = index
            cpu_ops.append(_cpu_op(index, node, rejected, delegate=delegate))
    return Placement(tuple(delegates), tuple(cpu_ops), tuple(boundary_ops))


def kernels_of(graph_module: GraphModule) -> dict[int, str]:
    """Kernel (out variant) of each operator that `placement_of` tagged, read from the program's final graph.

    An operator without an entry was optimised away: it costs nothing.
    """
    return {node.meta[_TAG]: _operator_name(node) for node in _calls(graph_module) if _TAG in node.meta}


def final_calls(graph_module: GraphModule) -> list[int | None]:
    """Tag of each call of the final top-level graph, in the order of the program's instructions.

    None for delegates and operators without a tag. Views of planned memory are no instructions.
    """
    nodes = (node for node in graph_module.graph.nodes if node.op == "call_function")
    return [
        node.meta.get(_TAG) for node in nodes if not (_is_bookkeeping(node) or _operator_name(node) == "view")
    ]


def _calls(graph_module: GraphModule) -> Iterator[Node]:
    """Every operator that does work, of the graph and then of its branches and loops."""
    for module in graph_module.modules():
        if isinstance(module, GraphModule):
            nodes = (node for node in module.graph.nodes if node.op == "call_function")
            yield from (node for node in nodes if not _is_bookkeeping(node))


def _is_bookkeeping(node: Node) -> bool:
    return node.target is operator.getitem or getattr(node.target, "__name__", "") in ("alloc", "free")


def _is_delegate(node: Node) -> bool:
    return node.target is torch.ops.higher_order.executorch_call_delegate


def _operator_name(node: Node) -> str:
    """``aten::add.out`` as kernels are registered; the default overload is left out."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):  # the edge dialect wraps torch's operator as `_op`
        target = getattr(target, "_op", target)
    if not isinstance(target, torch._ops.OpOverload):
        return str(getattr(target, "__name__", target))
    name, _, overload = target.name().partition(".")
    return f"{name}.{overload}" if overload else name


def module_path(node: Node) -> str:
    """Path of the innermost torch module that `node` comes from, empty at the top level."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values() if path]
    return str(paths[-1]) if paths else ""


def _cpu_op(index: int, node: Node, rejected: Mapping[str, str], *, delegate: bool) -> CpuOp:
    if not delegate:
        reason = "delegation is off"
    elif is_quantize(node) or is_dequantize(node):
        reason = "joins operators that stay on the CPU"
    else:
        told = rejected.get(node.name, "the partitioner left it out without giving a reason")
        reason = f"{_EXPLAINED[told]} ({told})" if told in _EXPLAINED else told
    return CpuOp(index, _operator_name(node), node.name, module_path(node), reason)


def is_quantize(node: Any) -> bool:
    """Whether `node` quantises a tensor, per tensor or channel."""
    return isinstance(node, Node) and _short_name(node).startswith(_QUANTIZE)


def is_dequantize(node: Any) -> bool:
    """Whether `node` dequantises a tensor, per tensor or channel."""
    return isinstance(node, Node) and _short_name(node).startswith(_DEQUANTIZE)


def _short_name(node: Node) -> str:
    return _operator_name(node).rpartition("::")[2] if node.op == "call_function" else ""


def _is_boundary(node: Node, inputs: frozenset[Any]) -> bool:
    """Whether a quantise feeds, or a dequantise reads, a delegate or the program's interface."""
    if is_quantize(node):
        return any(_is_delegate(user) or user.op == "output" for user in node.users)
    return is_dequantize(node) and (_is_delegate(_source(node)) or _source(node).name in inputs)


def _source(node: Node) -> Node:
    """The node whose result `node` reads, looking through `getitem`."""
    source = node.all_input_nodes[0]
    return source.all_input_nodes[0] if source.target is operator.getitem else source


def _boundary_op(index: int, node: Node) -> BoundaryOp:
    """Per-tensor operators carry scale and zero point as their second and third argument."""
    numbers = [arg for arg in node.args[1:3] if isinstance(arg, (int, float))]
    scale, zero_point = (float(numbers[0]), int(numbers[1])) if len(numbers) == 2 else (None, None)
    quantize = is_quantize(node)
    integer = node if quantize else node.all_input_nodes[0]
    if _source(node).op == "placeholder":
        side = "input"
    else:
        side = "output" if any(user.op == "output" for user in node.users) else "between"
    return BoundaryOp(
        index, _operator_name(node), node.name, side, scale, zero_point, _tensor_info(integer).dtype
    )


def _delegate_io(graph_module: GraphModule, node: Node) -> DelegateIo:
    attribute = str(node.all_input_nodes[0].target)
    lowered = getattr(graph_module, attribute)
    values = node.meta["val"] if isinstance(node.meta["val"], (tuple, list)) else [node.meta["val"]]
    inner = lowered.original_module.graph_module
    operators = Counter(_operator_name(n) for n in _calls(inner) if not (is_quantize(n) or is_dequantize(n)))
    return DelegateIo(
        attribute,
        lowered.backend_id,
        tuple(_tensor_info(source) for source in node.all_input_nodes[1:]),
        tuple(_value_info(f"{node.name}_{i}", value) for i, value in enumerate(values)),
        dict(sorted(operators.items())),
    )


def _tensor_info(node: Node) -> TensorInfo:
    return _value_info(node.name, node.meta["val"])


def _value_info(name: str, value: torch.Tensor) -> TensorInfo:
    return TensorInfo(name, tuple(value.shape), str(value.dtype).removeprefix("torch."))

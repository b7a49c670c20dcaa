# SPDX-License-Identifier: Apache-2.0
"""Export, quantisation with XNNPACK's quantiser, and lowering with its partitioner."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.utils._pytree import tree_map

from aot.calibration import Calibration
from aot.cortex_a.options import CpuDtype
from aot.failures import compile_errors
from aot.fallback import Placement, placement_of
from aot.hooks import source_line
from aot.models import Model
from aot.quantize import export_module, is_quantized
from report.errors import UsageError

if TYPE_CHECKING:
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager


_ORIGINS = ("stack_trace", "from_node")

KEPT_OUT = "kept out of XNNPACK by --keep-out"
"""The reason that a report gives for an operator that was to stay outside."""

UNKNOWN = "ExecuTorch's XNNPACK partitioner has no such operator"

_SHORT = {"_native_batch_norm_legit_no_training.default": "batch_norm"}
"""Names of operators where ATen's own is no name that anybody uses."""


@dataclasses.dataclass(frozen=True)
class Lowered:
    """A program in the edge dialect after lowering, its serialised form, and where its operators run.

    Attributes:
        lines: ``file.py:12`` in the model's code by name of an operator outside.
    """

    edge: EdgeProgramManager
    program: ExecutorchProgramManager
    placement: Placement
    lines: Mapping[str, str]


def in_type(model: Model, dtype: CpuDtype) -> Model:
    """`model` with parameters and example inputs of the type that is computed in.

    Raises:
        UsageError: fp16 of a program that was exported in another type.
    """
    if dtype is not CpuDtype.FP16:
        return model
    if model.module is None:
        hint = "export the module after .half(), and compile with --dtype fp32"
        raise UsageError(f"{model.name} is exported already", where="--dtype fp16", hint=hint)
    half = copy.deepcopy(model.module).half()  # a bundled example is loaded once in a process
    return dataclasses.replace(
        model, module=half, inputs=tree_map(_half, model.inputs), kwargs=tree_map(_half, dict(model.kwargs))
    )


def _half(value: Any) -> Any:
    return value.half() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def quantize(
    exported: ExportedProgram, model: Model, calibration: Calibration, dtype: CpuDtype, *, strict: bool
) -> ExportedProgram:
    """Observe `calibration`, convert, export again; a program that is quantised already stays as it is."""
    if not dtype.quantized or is_quantized(exported):
        return exported
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    dynamic = dtype is CpuDtype.INT8_DYNAMIC
    quantizer = XNNPACKQuantizer()
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic))
    with compile_errors("quantisation"), torch.no_grad():
        prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
        for sample in calibration.samples(model):
            prepared(*sample, **model.kwargs)
        converted = convert_pt2e(prepared)
    return export_module(converted, model, strict=strict)


def save(exported: ExportedProgram, path: Path) -> None:
    """Write `exported` as a .pt2 file, without the notes on its origin that name files of this machine."""
    nodes = list(exported.graph.nodes)
    kept = [{key: node.meta.pop(key) for key in _ORIGINS if key in node.meta} for node in nodes]
    torch.export.save(exported, path)
    for node, notes in zip(nodes, kept, strict=True):
        node.meta.update(notes)


def lower(
    exported: ExportedProgram, dtype: CpuDtype, *, delegate: bool, keep_out: Sequence[str] = ()
) -> Lowered:
    """Partition, lower and serialise. `exported` must not be used afterwards.

    Args:
        keep_out: operators that stay outside of every partition, by names that `operators` has.

    Raises:
        CompileError: ExecuTorch refuses the program, or an operator that stays on the CPU has no kernel.
        UsageError: an unknown name in `keep_out`.
    """
    from executorch.exir import to_edge_transform_and_lower

    kept = kept_out(keep_out)
    partitioners = _partitioners(dtype, kept) if delegate else None
    with _reasons() as rejected, compile_errors("lowering"):
        edge = to_edge_transform_and_lower(exported, partitioner=partitioners)
    nodes = [node for node in edge.exported_program().graph.nodes if node.op == "call_function"]
    rejected.update(_reasons_by_name(nodes, kept))
    placement = placement_of(edge.exported_program(), rejected, delegate=delegate)
    lines = {node.name: source_line(node) for node in nodes}
    with compile_errors("serialisation"):
        return Lowered(edge, edge.to_executorch(), placement, lines)


def _reasons_by_name(nodes: Sequence[Node], kept: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Node and reason for the operators that the partitioner was not to take, or has never heard of."""
    known = frozenset(operators().values())
    for node in nodes:
        name = _partitioner_name(node.target)
        if name in kept or name not in known:
            yield node.name, KEPT_OUT if name in kept else UNKNOWN


def operators() -> Mapping[str, str]:
    """Names of operators that the partitioner may take, and the names that its configurations have."""
    from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS

    names = [str(config.target_name) for config in ALL_PARTITIONER_CONFIGS]
    return {_SHORT.get(name, name.partition(".")[0]): name for name in names}


def kept_out(names: Sequence[str]) -> frozenset[str]:
    """The partitioner's names of the operators `names`.

    Raises:
        UsageError: it has none of that name.
    """
    known = operators() if names else {}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"operators: {', '.join(sorted(known))}"
            raise UsageError(f"XNNPACK takes no operator {name!r} anyway", where="--keep-out", hint=hint)
    return frozenset(known[name] for name in names)


def _partitioner_name(target: Any) -> str:
    """An edge operator as the partitioner's configurations call it: without its namespace."""
    from executorch.exir.backend.canonical_partitioners.config_partitioner import format_target_name

    return str(format_target_name(target.__name__))


def _partitioners(dtype: CpuDtype, kept: frozenset[str]) -> list[Any]:
    """XNNPACK takes linear layers with dynamic quantisation one by one, before everything else."""
    from executorch.backends.xnnpack.partition.config import ALL_PARTITIONER_CONFIGS
    from executorch.backends.xnnpack.partition.config.xnnpack_config import ConfigPrecisionType
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    configs = [config for config in ALL_PARTITIONER_CONFIGS if config.target_name not in kept]
    every = XnnpackPartitioner(configs)
    if dtype is not CpuDtype.INT8_DYNAMIC:
        return [every]
    dynamic = ConfigPrecisionType.DYNAMIC_QUANT
    return [XnnpackPartitioner(configs, config_precisions=dynamic, per_op_mode=True), every]


@contextlib.contextmanager
def _reasons() -> Iterator[dict[str, str]]:
    """The partitioner's reason by node name; it only logs them. The last one given counts."""
    from executorch.exir.backend.utils import WhyNoPartition

    found: dict[str, str] = {}

    def listen(_self: Any, node: Any, reason: str) -> None:
        found[node.name] = " ".join(reason.split())

    with mock.patch.object(WhyNoPartition, "__call__", listen):
        yield found

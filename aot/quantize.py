# SPDX-License-Identifier: Apache-2.0
"""Export, and post-training quantisation with Arm's quantiser: done once, shared by every target that can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.export import ExportedProgram

from aot.calibration import Calibration
from aot.failures import compile_errors, first_line
from aot.models import Model
from aot.options import Dtype
from aot.quantization_loss import LayerLoss, float_values, layer_losses
from report.errors import CompileError

if TYPE_CHECKING:
    from executorch.backends.arm.ethosu import EthosUCompileSpec


@dataclass(frozen=True)
class Quantized:
    """A quantised module, its program, and what each layer lost by it on the example input, if measured."""

    module: Any
    program: ExportedProgram
    losses: tuple[LayerLoss, ...] = ()


def export(model: Model, *, strict: bool) -> ExportedProgram:
    """`model` as an exported program with fixed shapes.

    Raises:
        CompileError: torch.export cannot trace it, or a dimension of an input is dynamic.
    """
    exported = model.exported
    if exported is None:
        assert model.module is not None
        exported = export_module(model.module.requires_grad_(False), model, strict=strict)
    _refuse_dynamic_inputs(exported, model.name)
    return exported


def export_module(module: torch.nn.Module, model: Model, *, strict: bool) -> ExportedProgram:
    """`module` as an exported program, traced with the inputs of `model`; raises CompileError."""
    try:
        return torch.export.export(module, model.inputs, dict(model.kwargs) or None, strict=strict)
    except Exception as error:
        raise CompileError(
            f"torch.export cannot trace {model.name}",
            where="export",
            why=f"{type(error).__name__}: {first_line(error)}",
            hint="try --non_strict_export" if strict else "",
        ) from error


def _refuse_dynamic_inputs(exported: ExportedProgram, name: str) -> None:
    """Command streams and XNNPACK's plans have fixed shapes; say which dimension has none."""
    for node in exported.graph.nodes:
        if node.op != "placeholder":
            continue
        for index, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
            if isinstance(size, torch.SymInt):
                raise CompileError(
                    f"input {node.name!r} of {name} is dynamic in dimension {index} ({size})",
                    where="export",
                    why="what is compiled here has fixed shapes",
                    hint="export with fixed sizes, that is without dynamic_shapes",
                )


def is_quantized(exported: ExportedProgram) -> bool:
    """Whether the program already holds quantise or dequantise operators."""
    spaces = ("quantized_decomposed", "torchao")
    return any(getattr(node.target, "namespace", None) in spaces for node in exported.graph.nodes)


def quantize(
    exported: ExportedProgram,
    model: Model,
    calibration: Calibration,
    spec: EthosUCompileSpec,
    dtype: Dtype,
    *,
    strict: bool,
    measure: bool = False,
) -> Quantized:
    """Observe `calibration`, convert, and export again; `measure` the loss of each layer.

    The guards that `ExportedProgram.module()` would add are left out, because Arm's passes cannot read them.
    """
    from executorch.backends.arm.quantizer import (
        EthosUQuantizer,
        get_symmetric_a16w8_quantization_config,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    configs = {
        Dtype.INT8: get_symmetric_quantization_config,
        Dtype.A16W8: get_symmetric_a16w8_quantization_config,
    }
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(configs[dtype](is_per_channel=True))
    with compile_errors("quantisation"), torch.no_grad():
        prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
        for sample in calibration.samples(model):
            prepared(*sample, **model.kwargs)
        floats = float_values(prepared, model.inputs, model.kwargs) if measure else {}
        converted = convert_pt2e(prepared)
        losses = layer_losses(converted, floats, model.inputs, model.kwargs) if measure else ()
    return Quantized(converted, export_module(converted, model, strict=strict), losses)


def reference_outputs(module: Any, model: Model) -> Any:
    """What `module` computes for the example inputs."""
    with torch.no_grad():
        return module(*model.inputs, **model.kwargs)

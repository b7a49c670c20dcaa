# SPDX-License-Identifier: Apache-2.0
"""Partition, lower and serialise one program for one target."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram

from aot.fallback import Placement, placement_of
from aot.hooks import LoweringRecord, recording
from aot.vela_config import VelaSettings
from npu.config import NpuConfig
from report.errors import ArmdeployError, CompileError

if TYPE_CHECKING:
    from executorch.backends.arm.ethosu import EthosUCompileSpec
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager


@dataclass(frozen=True)
class Lowered:
    """A program lowered for one target, with what the tools told about it."""

    edge: EdgeProgramManager
    program: ExecutorchProgramManager
    record: LoweringRecord
    placement: Placement


def compile_spec(
    target: NpuConfig,
    settings: VelaSettings,
    *,
    debug_mode: str | None = None,
    debug_folder: Path | None = None,
) -> EthosUCompileSpec:
    """ExecuTorch's compile specification for `target`.

    Args:
        debug_mode: "json" or "tosa" to write ExecuTorch's operator mapping and Vela's debug database to
            `debug_folder`. Only then does the .pte record a path of this machine, as ExecuTorch does.
    """
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    spec = EthosUCompileSpec(
        target.name,
        system_config=settings.system_config,
        memory_mode=settings.memory_mode,
        extra_flags=["--enable-debug-db"] if debug_mode else None,
        config_ini=settings.ini_name,
    )
    if debug_mode:
        spec.dump_intermediate_artifacts_to(str(debug_folder))
        spec.dump_debug_info(EthosUCompileSpec.DebugMode[debug_mode.upper()])
    return spec


def lower(
    exported: ExportedProgram,
    spec: EthosUCompileSpec,
    settings: VelaSettings,
    folder: Path,
    say: Callable[[str], None],
    *,
    delegate: bool,
) -> Lowered:
    """Lower `exported` for the target of `spec`; Vela's files of each delegate go below `folder`.

    Raises:
        CompileError: ExecuTorch or Vela refuses the model; the message names the operator when they do.
    """
    from executorch.backends.arm.ethosu import EthosUPartitioner
    from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower

    with recording(settings, folder, say) as record, _one_line_errors():
        edge = to_edge_transform_and_lower(
            exported,
            partitioner=[EthosUPartitioner(spec)] if delegate else None,
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
        placement = placement_of(edge.exported_program(), record.rejected, delegate=delegate)
        edge = edge.transform([ReplaceQuantNodesPass()])
        program = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))
    return Lowered(edge, program, record, placement)


@contextlib.contextmanager
def _one_line_errors() -> Any:
    """Turn whatever ExecuTorch raises into a `CompileError`."""
    try:
        yield
    except ArmdeployError:
        raise
    except Exception as error:
        raise _translated(error) from error


def _translated(error: Exception) -> CompileError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    if "Missing out variants" in lines[0]:
        return CompileError(
            lines[0],
            where="lowering",
            why="these operators stay on the CPU and no kernel library has them",
            hint="replace them in the model, or register a kernel's out variant",
        )
    return CompileError(
        "ExecuTorch cannot lower the model", where="lowering", why=f"{type(error).__name__}: {_root(error)}"
    )


def _root(error: BaseException) -> str:
    """First line of the innermost cause: the outer ones only tell which pass was running."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else repr(error)

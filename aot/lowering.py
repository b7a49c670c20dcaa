# SPDX-License-Identifier: Apache-2.0
"""From an exported program to ExecuTorch's: lowered to TOSA once per profile, finished once per target.

All targets with one TOSA profile (Ethos-U55 and U65; Ethos-U85) get the same partitions and TOSA graphs, and
making these takes nearly all the time. Only Vela and the serialisation depend on the target itself.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.export import ExportedProgram

from aot.failures import compile_errors
from aot.fallback import Placement, placement_of
from aot.hooks import TosaGraph, recording
from aot.vela_config import VelaSettings
from aot.vela_run import VelaRun, run_vela
from npu.config import NpuConfig
from report.errors import CompileError

if TYPE_CHECKING:
    from executorch.backends.arm.ethosu import EthosUCompileSpec
    from executorch.exir import EdgeProgramManager, ExecutorchProgramManager


@dataclass(frozen=True)
class Partitioned:
    """A program in the edge dialect whose delegates hold, for now, indices into `tosa`."""

    edge: EdgeProgramManager
    tosa: tuple[TosaGraph, ...]
    rejected: dict[str, str]
    placement: Placement


@dataclass(frozen=True)
class Lowered:
    """A program finished for one target; `graphs` and `runs` are in the order of `Placement.delegates`."""

    edge: EdgeProgramManager
    program: ExecutorchProgramManager
    graphs: tuple[TosaGraph, ...]
    runs: tuple[VelaRun, ...]


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
    spec._get_pass_pipeline_config()  # set on first use, and then recorded in the .pte: always use it
    return spec


def partition(exported: ExportedProgram, spec: EthosUCompileSpec, *, delegate: bool) -> Partitioned:
    """Partition `exported` and lower each partition to TOSA. `exported` must not be used afterwards.

    Raises:
        CompileError: ExecuTorch refuses the model (the message names the operator when it does), or would
            delegate parts of a branch or loop.
    """
    from executorch.backends.arm.ethosu import EthosUPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    from aot.vela_limits import NoTransposedInt16, one_reader_of_accumulators

    limited = spec.tosa_spec.is_U55_subset  # Ethos-U65 shares this profile
    within_limits = one_reader_of_accumulators() if limited else nullcontext()
    with recording() as record, within_limits, compile_errors("lowering"):
        checks = [NoTransposedInt16(record.rejected)] if limited else None
        edge = to_edge_transform_and_lower(
            exported,
            partitioner=[EthosUPartitioner(spec, additional_checks=checks)] if delegate else None,
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
    placement = placement_of(edge.exported_program(), record.rejected, delegate=delegate)
    if len(placement.delegates) != len(record.tosa):
        raise CompileError(
            f"{len(record.tosa) - len(placement.delegates)} partition(s) lie inside a branch or a loop",
            where="lowering",
            why="only partitions of the top-level graph are compiled",
            hint="take the control flow out of the model, or compile with --no-delegate",
        )
    return Partitioned(edge, tuple(record.tosa), record.rejected, placement)


def finish(
    partitioned: Partitioned,
    spec: EthosUCompileSpec,
    settings: VelaSettings,
    folder: Path,
    *,
    keep_all: bool = False,
) -> Lowered:
    """Run Vela for the target of `spec` and serialise; its files go to ``folder/delegate_N``.

    Args:
        keep_all: keep every file of Vela's, not only those that a report names.

    Raises:
        CompileError: Vela refuses a partition, or an operator on the CPU has no kernel.
    """
    from executorch.exir import ExecutorchBackendConfig

    with compile_errors("lowering"):
        edge = partitioned.edge.transform([_int8_quantise_kernels()])
        graphs, runs = [], []
        for index, io in enumerate(partitioned.placement.delegates):
            lowered = getattr(edge.exported_program().graph_module, io.attribute)
            graphs.append(partitioned.tosa[int(lowered.processed_bytes)])
            vela_folder = folder / f"delegate_{index}"
            flags = spec.compiler_flags
            runs.append(run_vela(graphs[-1].data, flags, settings, vela_folder, keep_all=keep_all))
            _set_delegate(edge, io.attribute, runs[-1].blob, spec)
        program = edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False))
    return Lowered(edge, program, tuple(graphs), tuple(runs))


def _int8_quantise_kernels() -> Any:
    """ExecuTorch's pass to the cortex_m quantise and dequantise kernels, for int8 alone.

    Released firmware checks for int8 and aborts on int16; the portable kernels take both.
    """
    import torch
    from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass

    class Int8Only(ReplaceQuantNodesPass):
        @staticmethod
        def _is_qualified_node(args: Any) -> bool:
            return args[5] == torch.int8 and ReplaceQuantNodesPass._is_qualified_node(args)

    return Int8Only()


def _set_delegate(edge: EdgeProgramManager, attribute: str, blob: bytes, spec: EthosUCompileSpec) -> None:
    """Give the delegate called `attribute` its compiled bytes, and the specification they were made with."""
    from executorch.exir.lowered_backend_module import LoweredBackendModule

    graph_module = edge.exported_program().graph_module
    lowered = getattr(graph_module, attribute)
    compiled = LoweredBackendModule(lowered.original_module, lowered.backend_id, blob, spec._to_list())
    compiled.meta = lowered.meta
    setattr(graph_module, attribute, compiled)

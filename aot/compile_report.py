# SPDX-License-Identifier: Apache-2.0
"""The compile report: what became of a model on one target, as plain data; every table derives from it.

Paths in a report are relative to the report's own folder. Sizes are bytes. Vela's figures carry the nature
``estimated``: they come from a static formula, not from a measurement.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from aot.calibration import Calibration
from aot.fallback import BoundaryOp, CpuOp, DelegateIo, Placement, TensorInfo, kernels_of
from aot.hooks import TosaGraph
from aot.lowering import Lowered
from aot.models import Model
from aot.quantization_loss import LayerLoss
from aot.targets import FAMILIES
from aot.vela_config import VelaSettings
from aot.vela_run import VelaRun
from npu.config import NpuConfig
from npu.container import VelaBin, parse_velabin
from report import pte as pte_format
from report.compile_report import SCHEMA_VERSION
from report.record import tool_version

_TOOLS = ("torch", "executorch", "ethos-u-vela", "tosa-tools", "torchao", "numpy")

_VELA_METRICS = (
    ("inference_time", "s"),
    ("core_clock", "Hz"),
    ("nn_macs", "MACs"),
    ("cycles_total", "cycles"),
    ("cycles_npu", "cycles"),
    ("cycles_sram_access", "cycles"),
    ("cycles_dram_access", "cycles"),
    ("cycles_on_chip_flash_access", "cycles"),
    ("cycles_off_chip_flash_access", "cycles"),
    ("sram_memory_used", "KiB"),
    ("dram_memory_used", "KiB"),
    ("on_chip_flash_memory_used", "KiB"),
    ("off_chip_flash_memory_used", "KiB"),
    ("sram_total_bytes", "bytes"),
    ("dram_total_bytes", "bytes"),
    ("on_chip_flash_total_bytes", "bytes"),
    ("off_chip_flash_total_bytes", "bytes"),
    ("total_original_weights", "bytes"),
    ("total_npu_encoded_weights", "bytes"),
)
"""Columns of Vela's summary file that are kept, with their unit."""


@dataclasses.dataclass(frozen=True)
class Compilation:
    """One finished compilation, all that a report is made of."""

    model: Model
    target: NpuConfig
    settings: VelaSettings
    dtype: str
    calibration: Calibration | None
    losses: Sequence[LayerLoss]
    placement: Placement
    lowered: Lowered
    pte: Path
    labels: Path | None
    examples: Sequence[Path]
    preprocessing: Mapping[str, Any] | None
    seconds: Mapping[str, float]


def build_report(c: Compilation) -> dict[str, Any]:
    """The report of `c` as JSON-ready data."""
    folder = c.pte.parent
    program = pte_format.load(c.pte)
    method = program.method()
    delegates = [
        _delegate(index, io, graph, run, program.named_data, folder)
        for index, (io, graph, run) in enumerate(
            zip(c.placement.delegates, c.lowered.graphs, c.lowered.runs, strict=True)
        )
    ]
    kernels = kernels_of(c.lowered.program.exported_program().graph_module)
    warnings = _warnings(c, delegates)
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"armdeploy {tool_version()}",
        "model": c.model.name,
        "model_sha256": c.model.sha256,
        "target": c.target.name,
        "system_config": c.settings.system_config,
        "memory_mode": c.settings.memory_mode,
        "vela_config": c.settings.ini_name,
        "quantization": {
            "dtype": c.dtype,
            "calibration": _calibration(c.calibration),
            "layers": [dataclasses.asdict(loss) for loss in c.losses] or None,
        },
        "pte": _artefact(c.pte, folder),
        "inputs": _inputs(c, method.tensors(method.inputs)),
        "outputs": [
            _program_tensor(f"output_{i}", tensor) for i, tensor in enumerate(method.tensors(method.outputs))
        ],
        "delegates": delegates,
        "cpu_ops": [_cpu_op(op, kernels) for op in c.placement.cpu_ops],
        "boundary_ops": [_boundary_op(op, kernels) for op in c.placement.boundary_ops],
        "memory": _memory(method.planned_bytes, delegates),
        "warnings": warnings,
        "labels": _relative(c.labels, folder) if c.labels else None,
        "preprocessing": c.preprocessing,
        "tools": tool_versions(),
        "seconds": dict(c.seconds),
    }


def tool_versions() -> dict[str, str | None]:
    """Versions of Python and the packages that shape the result; None for one that is not installed."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name in _TOOLS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def sha256_of(path: Path) -> str:
    """SHA-256 of the file at `path`, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _artefact(path: Path, folder: Path) -> dict[str, Any]:
    return {"path": _relative(path, folder), "sha256": sha256_of(path), "size": path.stat().st_size}


def _delegate(
    index: int,
    io: DelegateIo,
    graph: TosaGraph,
    run: VelaRun,
    named_data: Mapping[str, bytes],
    folder: Path,
) -> dict[str, Any]:
    """One delegate, in the order of execution, which is the order of the .pte."""
    network: VelaBin = parse_velabin(run.blob, named_data)
    return {
        "id": index,
        "backend": io.backend,
        "tosa": _relative(run.tosa, folder),
        "tosa_sha256": sha256_of(run.tosa),
        "debug_database": _relative(run.debug_database, folder),
        "origins": [dataclasses.asdict(origin) for origin in graph.origins],
        "blob_sha256": hashlib.sha256(run.blob).hexdigest(),
        "inputs": [_tensor(t) for t in io.inputs],
        "outputs": [_tensor(t) for t in io.outputs],
        "operators": dict(io.operators),
        "command_stream_bytes": len(network.cmd_data),
        "weight_bytes": len(network.weight_data),
        "scratch_bytes": network.scratch_size,
        "vela": _vela_metrics(run),
        "vela_seconds": round(run.seconds, 3),
    }


def _vela_metrics(run: VelaRun) -> dict[str, dict[str, Any]]:
    if run.summary is None:
        return {}
    with run.summary.open(newline="", encoding="utf-8") as file:
        row = next(csv.DictReader(file))
    return {
        name: {"value": _number(row[name]), "unit": unit, "nature": "estimated"}
        for name, unit in _VELA_METRICS
        if name in row
    }


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _tensor(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "dtype": info.dtype}


def _inputs(c: Compilation, tensors: Sequence[pte_format.TensorMeta]) -> list[dict[str, Any]]:
    """The program's inputs, by their names in the exported graph, with the files of their examples."""
    names = c.lowered.edge.exported_program().graph_signature.user_inputs
    records = [_program_tensor(str(name), tensor) for name, tensor in zip(names, tensors, strict=True)]
    if len(c.examples) != len(records):
        return records
    paths = (_relative(path, c.pte.parent) for path in c.examples)
    return [record | {"example": path} for record, path in zip(records, paths, strict=True)]


def _program_tensor(name: str, tensor: pte_format.TensorMeta) -> dict[str, Any]:
    return {"name": name, "shape": list(tensor.shape), "dtype": tensor.dtype}


def _cpu_op(op: CpuOp, kernels: Mapping[int, str]) -> dict[str, Any]:
    return {
        "op": op.op,
        "name": op.name,
        "module_path": op.module_path,
        "reason": op.reason,
        "kernel": kernels.get(op.id),
    }


def _boundary_op(op: BoundaryOp, kernels: Mapping[int, str]) -> dict[str, Any]:
    record = dataclasses.asdict(op)
    del record["id"]
    return record | {"kernel": kernels.get(op.id)}


def _memory(planned: Sequence[int], delegates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Planned arenas by memory id (ExecuTorch leaves id 0 unused), and the largest scratch of a delegate."""
    return {
        "planned_bytes": list(planned),
        "planned_peak_bytes": sum(planned),
        "scratch_peak_bytes": max((d["scratch_bytes"] for d in delegates), default=0),
    }


def _calibration(calibration: Calibration | None) -> dict[str, Any] | None:
    if calibration is None:
        return None
    preprocessing = calibration.preprocessing
    return {
        "source": "data" if calibration.source else "example input",
        "samples": len(calibration.paths) or 1,
        "skipped": calibration.skipped,
        "preprocessing": preprocessing.to_json() if preprocessing else None,
    }


def _warnings(c: Compilation, delegates: Sequence[Mapping[str, Any]]) -> list[str]:
    warnings = []
    if c.calibration is not None and c.calibration.source is None:
        warnings.append(
            "no calibration data: the quantisation ranges rest on the example input alone; "
            "give --calibration_data"
        )
    if c.calibration is not None and c.calibration.skipped:
        warnings.append(f"{c.calibration.skipped} calibration samples beyond the limit were not used")
    warnings += [w for w in (_sram_warning(c, d) for d in delegates) if w]
    return warnings


def _sram_warning(c: Compilation, delegate: Mapping[str, Any]) -> str | None:
    """Compare what the memory mode puts into SRAM with what the family's reference board has."""
    board = FAMILIES[c.target.family].board
    parts = {}
    if c.settings.arena_in_sram:
        parts["scratch"] = delegate["scratch_bytes"]
    if c.settings.constants_in_sram:
        parts["weights and commands"] = delegate["weight_bytes"] + delegate["command_stream_bytes"]
    if sum(parts.values()) <= board.sram_bytes:
        return None
    listed = " + ".join(f"{name} {size:,}" for name, size in parts.items())
    other = "Shared_Sram" if c.settings.constants_in_sram else "a dedicated mode"
    return (
        f"delegate {delegate['id']} needs {sum(parts.values()):,} bytes of SRAM in {c.settings.memory_mode} "
        f"({listed}), {board.name} has {board.sram_bytes:,}; try --memory_mode {other}, or a smaller model"
    )

# SPDX-License-Identifier: Apache-2.0
"""The compile report of a Cortex-A program, as plain data; paths are relative to its folder, sizes bytes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aot.calibration import Calibration
from aot.compile_report import sha256_of, tool_versions
from aot.cortex_a.layout import Place, Rewrite, places_json
from aot.cortex_a.lowering import Lowered
from aot.cortex_a.options import CpuJob
from aot.fallback import CpuOp, DelegateIo, TensorInfo, final_calls, kernels_of
from aot.models import Model
from report import layout, layout_advice, pte, xnnpack
from report.compile_report import SCHEMA_VERSION
from report.record import tool_version
from report.tables import table


@dataclasses.dataclass(frozen=True)
class Fixed:
    """The layout before and after rewriting.

    Attributes:
        unfolded: normalisations that no convolution takes in, in the model as it came.
        rewrites: what the passes that were asked for have done.
        before: `report.layout.Layout.totals` without them; None when nothing was asked for.
    """

    unfolded: Sequence[Place] = ()
    rewrites: Sequence[Rewrite] = ()
    before: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Compilation:
    """One finished compilation.

    Attributes:
        dtype: what was computed in: fp32, fp16, int8, int8-dynamic, or "as given".
        reference: the program before lowering, which a run's outputs are compared with.
        examples: the example inputs, a file for each.
    """

    model: Model
    job: CpuJob
    dtype: str
    calibration: Calibration | None
    lowered: Lowered
    fixed: Fixed
    reference: Path
    examples: Sequence[Path]
    labels: Path | None
    preprocessing: Mapping[str, Any] | None
    seconds: Mapping[str, float]


def build_report(c: Compilation) -> dict[str, Any]:
    """The report of `c` as JSON-ready data."""
    folder = c.job.pte.parent
    program = pte.load(c.job.pte)
    method = program.method()
    final = c.lowered.program.exported_program().graph_module
    kernels, places = kernels_of(final), _instructions(method, final_calls(final))
    graphs = [xnnpack.read(delegate.blob) for delegate in method.delegates]
    placement = c.lowered.placement
    names = c.lowered.edge.exported_program().graph_signature.user_inputs
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"armdeploy {tool_version()}",
        "model": c.model.name,
        "model_sha256": c.model.sha256,
        "target": c.job.target.name,
        "quantization": {"dtype": c.dtype, "calibration": _calibration(c.calibration)},
        "pte": {
            "path": _relative(c.job.pte, folder),
            "sha256": sha256_of(c.job.pte),
            "size": c.job.pte.stat().st_size,
        },
        "reference": _relative(c.reference, folder),
        "inputs": [
            _program_tensor(str(name), tensor) | {"example": _relative(path, folder)}
            for name, tensor, path in zip(names, method.tensors(method.inputs), c.examples, strict=True)
        ],
        "outputs": [
            _program_tensor(f"output_{n}", tensor) for n, tensor in enumerate(method.tensors(method.outputs))
        ],
        "delegates": [
            _delegate(number, io, graph)
            for number, (io, graph) in enumerate(zip(placement.delegates, graphs, strict=True))
        ],
        "cpu_ops": [
            _cpu_op(op, kernels) | _origin(op.id, op.name, c.lowered, places) for op in placement.cpu_ops
        ],
        "boundary_ops": [
            dataclasses.asdict(op)
            | {"kernel": kernels.get(op.id)}
            | _origin(op.id, op.name, c.lowered, places)
            for op in placement.boundary_ops
        ],
        "layout": _layout(c.fixed, method),
        "memory": {
            "planned_bytes": list(method.planned_bytes),
            "planned_peak_bytes": sum(method.planned_bytes),
        },
        "warnings": _warnings(c),
        "labels": _relative(c.labels, folder) if c.labels else None,
        "preprocessing": c.preprocessing,
        "tools": tool_versions(),
        "seconds": dict(c.seconds),
    }


def summary(report: Mapping[str, Any]) -> str:
    """The report as a few short tables."""
    program, on_cpu = report["pte"], [*report["cpu_ops"], *report["boundary_ops"]]
    head = (
        f"{report['model']} for {report['target']}, {report['quantization']['dtype']}\n"
        f"{len(report['delegates'])} partition(s) in XNNPACK, {len(on_cpu)} operator(s) outside\n"
        f"{program['path']}  {program['size']:,} bytes  sha256 {program['sha256'][:16]}"
    )
    blocks = [
        head,
        table([_delegate_row(delegate) for delegate in report["delegates"]]),
        f"outside:\n{table([_cpu_row(op) for op in on_cpu])}" if on_cpu else "",
        _layout_text(report["layout"]),
        "\n".join(f"warning: {warning}" for warning in report["warnings"]),
    ]
    return "\n\n".join(block for block in blocks if block)


def _layout_text(found: Mapping[str, Any]) -> str:
    """What --fix-layout has changed, if it was asked for."""
    if found["before"] is None:
        return ""
    lines = map(layout_advice.rewrite_text, found["rewrites"])
    return "\n".join(["layout:", layout_advice.comparison(found["before"], found["after"]), *lines])


def _delegate_row(delegate: Mapping[str, Any]) -> dict[str, Any]:
    transposes, copies = delegate["transposes"], delegate["copies"]
    return {
        "partition": delegate["id"],
        "operators": sum(delegate["nodes"].values()),
        "kinds": ", ".join(f"{count} {kind}" for kind, count in delegate["nodes"].items()),
        "transposes": transposes["count"],
        "bytes transposed": transposes["bytes"],
        "copies": copies["count"],
        "bytes copied": copies["bytes"],
    }


def _cpu_row(op: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operator": op["op"],
        "in": op.get("module_path") or op["name"],
        "kernel": op["kernel"] or "none, optimised away",
        "reason": op.get("reason", "the program's interface is float"),
    }


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _program_tensor(name: str, tensor: pte.TensorMeta) -> dict[str, Any]:
    return {"name": name, "shape": list(tensor.shape), "dtype": tensor.dtype}


def _delegate(number: int, io: DelegateIo, graph: Sequence[xnnpack.Node]) -> dict[str, Any]:
    """One delegate in order of execution. `operators` are the model's, `nodes` XNNPACK's."""
    moved = {
        key: xnnpack.movement(graph, wanted)
        for key, wanted in (("transposes", xnnpack.TRANSPOSES), ("copies", xnnpack.COPIES))
    }
    return {
        "id": number,
        "backend": io.backend,
        "inputs": [_tensor(tensor) for tensor in io.inputs],
        "outputs": [_tensor(tensor) for tensor in io.outputs],
        "operators": dict(io.operators),
        "nodes": xnnpack.kinds(graph),
        **{key: {"count": found.count, "bytes": found.nbytes} for key, found in moved.items()},
    }


def _tensor(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "dtype": info.dtype}


def _cpu_op(op: CpuOp, kernels: Mapping[int, str]) -> dict[str, Any]:
    kept = {"op": op.op, "name": op.name, "module_path": op.module_path, "reason": op.reason}
    return {**kept, "kernel": kernels.get(op.id)}


def _instructions(method: pte.Method, calls: Sequence[int | None]) -> dict[int, int]:
    """Number of the instruction of each tagged operator.

    Empty when graph and program do not run in step, as with branches and loops.
    """
    numbers = [
        number
        for number, item in enumerate(method.instructions)
        if isinstance(item, pte.DelegateCall)
        or (isinstance(item, pte.KernelCall) and not item.operator.startswith("executorch_prim::"))
    ]
    if len(numbers) != len(calls):
        return {}
    return {tag: number for tag, number in zip(calls, numbers, strict=True) if tag is not None}


def _origin(tag: int, name: str, lowered: Lowered, places: Mapping[int, int]) -> dict[str, Any]:
    return {"line": lowered.lines.get(name, ""), "instruction": places.get(tag)}


def _layout(fixed: Fixed, method: pte.Method) -> dict[str, Any]:
    """Totals after and, when something was rewritten, before; see `report.layout`."""
    return {
        "before": fixed.before,
        "after": layout.analyse(method).totals(),
        "rewrites": [
            {"name": r.name, "replaced": list(places_json(r.replaced)), "error": r.error}
            for r in fixed.rewrites
        ],
        "unfolded_norms": list(places_json(fixed.unfolded)),
    }


def _calibration(calibration: Calibration | None) -> dict[str, Any] | None:
    if calibration is None:
        return None
    source = "data" if calibration.source else "example input"
    return {"source": source, "samples": len(calibration.paths) or 1, "skipped": calibration.skipped}


def _warnings(c: Compilation) -> list[str]:
    if c.calibration is None or c.calibration.source is not None:
        return []
    return ["no calibration data: the ranges rest on the example input alone; give --calibration_data"]

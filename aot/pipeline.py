# SPDX-License-Identifier: Apache-2.0
"""One model to one .pte a target: export once, quantise once per TOSA profile, lower per target."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from aot import bundle, lowering
from aot.calibration import find_calibration, image_preprocessing
from aot.compile_report import Compilation, build_report
from aot.fallback import Placement
from aot.models import Model
from aot.options import Job, Options
from aot.quantize import Quantized, export, is_quantized, quantize, reference_outputs
from aot.quicken import quickened
from aot.summary import fallback_table
from npu.config import NpuConfig
from report.errors import CompileError, UsageError
from report.preprocess import ImagePreprocessing, parse_preprocessing

if TYPE_CHECKING:
    from executorch.backends.arm.ethosu import EthosUCompileSpec

Say = Callable[[str], None]

_LARGE_GRAPH = 300
"""Operators from which ExecuTorch's passes take long enough to say so (they re-trace the graph 50 times)."""


@dataclass(frozen=True)
class _Ready:
    """A lowered program, the quantised one it comes from, and the type that was quantised to."""

    partitioned: lowering.Partitioned
    quantized: Quantized
    dtype: str


class Compiler:
    """Compiles one model for any number of targets, doing shared work once.

    Raises:
        UsageError: calibration data or preprocessing do not fit the model.
    """

    def __init__(self, model: Model, options: Options, say: Say) -> None:
        self.model, self.options, self.say = model, options, say
        self._image = _image_preprocessing(model, options.preprocess)
        self._calibration = find_calibration(options.calibration_data, model, self._image)
        self._exported: ExportedProgram | None = None
        self._ready: dict[str, _Ready] = {}
        self._seconds: dict[str, float] = {}

    @quickened()
    def compile(self, job: Job) -> dict[str, Any]:
        """Compile for one target, write its files, and return its report.

        Raises:
            CompileError: nothing can run on the NPU, or ExecuTorch or Vela refuse the model.
        """
        spec = lowering.compile_spec(
            job.target, job.settings, debug_mode=self.options.debug_mode, debug_folder=job.artefacts
        )
        ready = self._prepare(spec, job.target)
        for index, graph in enumerate(ready.partitioned.tosa):
            self.say(f"vela for {job.target.name}: delegate {index}, {len(graph.data):,} bytes of TOSA")
        with self._timed("vela_and_serialisation"):
            lowered = lowering.finish(
                ready.partitioned,
                spec,
                job.settings,
                job.artefacts,
                keep_all=self.options.keep_intermediates,
            )
        self._write_program(job, ready, lowered)
        return self._write_report(job, ready, lowered)

    def _prepare(self, spec: EthosUCompileSpec, target: NpuConfig) -> _Ready:
        """The lowered program, shared by all targets with one TOSA profile (debug files are per target)."""
        profile = str(spec.tosa_spec) if self.options.debug_mode is None else target.name
        if profile not in self._ready:
            self._ready[profile] = self._lower(*self._quantize(self._export(), spec), spec)
            if self.options.delegate:
                _refuse_empty(self._ready[profile].partitioned.placement, target, self.say)
        return self._ready[profile]

    def _lower(self, quantized: Quantized, dtype: str, spec: EthosUCompileSpec) -> _Ready:
        count = sum(node.op == "call_function" for node in quantized.program.graph.nodes)
        note = ", large graphs take minutes" if count > _LARGE_GRAPH else ""
        self.say(f"lowering {count} operators{note}")
        with self._timed("lowering"):
            partitioned = lowering.partition(quantized.program, spec, delegate=self.options.delegate)
        return _Ready(partitioned, quantized, dtype)

    def _export(self) -> ExportedProgram:
        if self._exported is None:
            self.say(f"exporting {self.model.name}")
            with self._timed("export"):
                self._exported = export(self.model, strict=self.options.strict)
        return self._exported

    def _quantize(self, exported: ExportedProgram, spec: EthosUCompileSpec) -> tuple[Quantized, str]:
        """The program to lower with the module that computes its reference outputs, and its type's name."""
        if is_quantized(exported):
            if self.options.calibration_data:
                raise UsageError("the model is quantised already", where="--calibration_data")
            self.say(f"{self.model.name} is quantised already, taken as it is")
            return _as_given(exported), "as given"
        if not self.options.quantize:
            _refuse_float(self.model, self.options)
            return _as_given(exported), "float32"
        dtype = self.options.dtype
        self.say(f"quantising to {dtype.value}, {len(self._calibration.paths) or 1} sample(s)")
        with self._timed("quantisation"):
            quantized = quantize(
                exported,
                self.model,
                self._calibration,
                spec,
                dtype,
                strict=self.options.strict,
                measure=self.options.quantization_loss,
            )
        return quantized, dtype.value

    def _write_program(self, job: Job, ready: _Ready, lowered: lowering.Lowered) -> None:
        if self.options.bundleio:
            reference = reference_outputs(ready.quantized.module, self.model)
            bundle.write_bundle(job.pte, lowered, self.model, reference)
        else:
            with job.pte.open("wb") as file:
                lowered.program.write_to_file(file)
        if self.options.etrecord:
            bundle.write_etrecord(job.pte.with_name(f"{job.pte.stem}_etrecord.bin"), lowered)
        if self.options.keep_intermediates:
            torch.export.save(self._export(), job.artefacts / f"{self.model.name}_exported_program.pt2")
            rejected = json.dumps(ready.partitioned.rejected, indent=2)
            (job.artefacts / "partition_report.json").write_text(rejected + "\n", encoding="utf-8")

    def _write_report(self, job: Job, ready: _Ready, lowered: lowering.Lowered) -> dict[str, Any]:
        finished = Compilation(
            model=self.model,
            target=job.target,
            settings=job.settings,
            dtype=ready.dtype,
            calibration=self._calibration if ready.dtype == self.options.dtype.value else None,
            losses=ready.quantized.losses,
            placement=ready.partitioned.placement,
            lowered=lowered,
            pte=job.pte,
            labels=_write_labels(self.model, job),
            examples=_write_examples(self.model, job),
            preprocessing=self._image.to_json() if self._image else None,
            seconds=self._seconds,
        )
        report = build_report(finished)
        job.report_path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        return report

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self._seconds[stage] = round(time.monotonic() - start, 3)


def _as_given(exported: ExportedProgram) -> Quantized:
    """The program unchanged: a copy, since lowering uses it up."""
    return Quantized(exported.module(check_guards=False), copy.deepcopy(exported))


def _image_preprocessing(model: Model, text: str | None) -> ImagePreprocessing | None:
    if text is None:
        return image_preprocessing(model)
    return parse_preprocessing(text, model.inputs[0].shape)


def _write_labels(model: Model, job: Job) -> Path | None:
    """Class names, one a line in output order."""
    if not model.labels:
        return None
    path = job.artefacts / "labels.txt"
    path.write_text("\n".join(model.labels) + "\n", encoding="utf-8")
    return path


def _write_examples(model: Model, job: Job) -> list[Path]:
    """The example input, a .npy file for each tensor: what `run` takes when it is given no other."""
    paths = []
    for number, tensor in enumerate(tree_leaves((model.inputs, dict(model.kwargs)))):
        if isinstance(tensor, torch.Tensor):
            paths.append(job.artefacts / f"input-{number}.npy")
            np.save(paths[-1], tensor.detach().numpy())
    return paths


def _refuse_float(model: Model, options: Options) -> None:
    if options.delegate:
        raise CompileError(
            f"{model.name} is a float model",
            where="--no-quantize",
            why="Ethos-U55, U65 and U85 compute on integers only, so nothing would run on the NPU",
            hint="leave --no-quantize out, or add --no-delegate to keep everything on the CPU",
        )


def _refuse_empty(placement: Placement, target: NpuConfig, say: Say) -> None:
    """A program without a delegate is no success on an NPU target: say why for every operator."""
    if placement.delegates:
        return
    say(fallback_table([vars(op) for op in placement.cpu_ops]))
    reasons = sorted({op.reason for op in placement.cpu_ops}) or ["the model computes nothing"]
    raise CompileError(
        f"no operator of the model can run on {target.name}",
        where="partitioner",
        why=reasons[0] if len(reasons) == 1 else f"{len(reasons)} different reasons, listed above",
        hint="--no-delegate compiles for the CPU alone",
    )

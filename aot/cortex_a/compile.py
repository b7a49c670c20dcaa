# SPDX-License-Identifier: Apache-2.0
"""Compiles a model for Cortex-A targets: the part of ``compile`` for these."""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aot.cortex_a.options import CpuDtype, CpuJob, CpuOptions, LayoutFix, parse_cpu_dtype
from aot.model_names import check_source
from report.cortex_a import FLOAT_PROGRAM, CpuTarget
from report.errors import UsageError
from report.quiet import quiet

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from aot.cortex_a.lowering import Lowered
    from aot.cortex_a.report import Fixed
    from aot.models import Model

Say = Callable[[str], None]

_FOR_ETHOS_U = ("system_config", "memory_mode", "config", "enable_debug_mode", "bundleio", "intermediates")
"""Options of compile that mean nothing here."""


def compile_models(
    args: argparse.Namespace, targets: Sequence[CpuTarget], default_model: str, say: Say
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Compile for each target in turn; yields the program's path and its compile report.

    Every option is checked before the first target is compiled.

    Raises:
        ArmdeployError: with the exit code that belongs to it.
    """
    options = _options(args)
    _check_output(args.output, targets)
    check_source(args.model or default_model)  # before the imports, which take seconds
    warnings.filterwarnings("ignore", category=FutureWarning)
    with quiet():
        import executorch.backends.xnnpack.partition.xnnpack_partitioner  # noqa: F401

        from aot.cortex_a.lowering import kept_out
        from aot.models import load_model
        from aot.quicken import quickened
    kept_out(options.keep_out)
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for results, whatever a model file prints
        model = load_model(args.model or default_model, args.model_input)
    for target in targets:
        job = _job(args.output, model.name, target, options)
        with contextlib.redirect_stdout(sys.stderr), quickened():
            report = _Compiler(model, options, say).compile(job)
        say(f"wrote {job.pte} and {job.report_path.name}")
        yield job.pte, report


def _options(args: argparse.Namespace) -> CpuOptions:
    for name in _FOR_ETHOS_U:
        if getattr(args, name, None):
            raise UsageError(f"--{name} is for Ethos-U targets", where="--target cortex-a")
    dtype = parse_cpu_dtype(args.dtype, quantize=args.quantize)
    if args.calibration_data and not dtype.quantized:
        raise UsageError(f"--calibration_data needs quantisation, the type is {dtype.value}", where="--dtype")
    return CpuOptions(
        dtype=dtype,
        delegate=args.delegate,
        strict=args.strict,
        calibration_data=args.calibration_data,
        preprocess=args.preprocess,
        etrecord=args.etrecord,
        keep_out=tuple(name for names in args.keep_out for name in names.split(",") if name),
        fix=_fix(args),
    )


def _fix(args: argparse.Namespace) -> LayoutFix:
    wanted = LayoutFix.NORM if args.fix_layout else LayoutFix.NONE
    return wanted | (LayoutFix.GELU if args.approximate_gelu else LayoutFix.NONE)


def _check_output(output: str, targets: Sequence[CpuTarget]) -> None:
    path = Path(output)
    if path.suffix == ".bpte":
        raise UsageError(f"{output} ends in .bpte", where="--output", hint="Cortex-A programs are .pte files")
    if path.suffix == ".pte" and len(targets) > 1:
        raise UsageError("one file for several targets", where="--output", hint="give a folder")
    folder = path.parent if path.suffix == ".pte" else path
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot create {folder}", where="--output", why=str(error.strerror)) from error


def _job(output: str, model: str, target: CpuTarget, options: CpuOptions) -> CpuJob:
    """The output that `-o` names, or ``MODEL_TYPE_xnnpack_TARGET.pte`` in the folder that it names."""
    pte = Path(output)
    if pte.suffix != ".pte":
        backend = "xnnpack" if options.delegate else "portable"
        pte /= f"{model}_{options.dtype.value}_{backend}_{target.name}.pte"
    artefacts = pte.with_name(f"{pte.stem}_artifacts")
    artefacts.mkdir(parents=True, exist_ok=True)
    return CpuJob(target, pte, artefacts)


class _Compiler:
    """One model, one target."""

    def __init__(self, model: Model, options: CpuOptions, say: Say) -> None:
        from aot.calibration import find_calibration, image_preprocessing
        from aot.cortex_a.lowering import in_type
        from report.preprocess import parse_preprocessing

        self.options, self.say = options, say
        image = (
            parse_preprocessing(options.preprocess, model.inputs[0].shape)
            if options.preprocess
            else image_preprocessing(model)
        )
        self._image = image
        self._calibration = find_calibration(options.calibration_data, model, image)
        self.model = in_type(model, options.dtype)
        self._seconds: dict[str, float] = {}

    def compile(self, job: CpuJob) -> dict[str, Any]:
        """Compile, write the files, and return the report; raises CompileError."""
        from aot.cortex_a import layout, lowering
        from aot.cortex_a.report import Fixed
        from aot.quantize import export, is_quantized

        options, model = self.options, self.model
        self.say(f"exporting {model.name}, {options.dtype.value}")
        with self._timed("export"):
            exported = export(model, strict=options.strict)
        given = is_quantized(exported)
        unfolded = layout.unfolded_norms(exported)
        with self._timed("layout"):
            before = self._layout_without_fix(exported) if options.fix else None
            exported, rewrites = layout.fix(exported, model, options.fix, strict=options.strict)
        if options.dtype.quantized and not given:
            lowering.save(exported, job.artefacts / FLOAT_PROGRAM)
        with self._timed("quantisation"):
            program = self._quantized(exported)
        reference = job.artefacts / "reference.pt2"
        lowering.save(program, reference)
        self.say(f"lowering {sum(node.op == 'call_function' for node in program.graph.nodes)} operators")
        with self._timed("lowering"):
            lowered = self._lowered(program)
        self._write(job, lowered)
        fixed = Fixed(unfolded, rewrites, before)
        return self._report(job, lowered, reference, "as given" if given else options.dtype.value, fixed)

    def _quantized(self, exported: ExportedProgram) -> ExportedProgram:
        from aot.cortex_a.lowering import quantize

        options = self.options
        return quantize(exported, self.model, self._calibration, options.dtype, strict=options.strict)

    def _lowered(self, program: ExportedProgram) -> Lowered:
        from aot.cortex_a.lowering import lower

        options = self.options
        return lower(program, options.dtype, delegate=options.delegate, keep_out=options.keep_out)

    def _layout_without_fix(self, exported: ExportedProgram) -> dict[str, Any]:
        """What the layout would be without any rewrite, which takes a compilation of its own."""
        from report.layout import analyse
        from report.pte import parse

        self.say("lowering without --fix-layout, to compare with")
        again = copy.deepcopy(exported)  # lowering changes it
        lowered = self._lowered(self._quantized(again))
        return analyse(parse(lowered.program.buffer, self.model.name).method()).totals()

    def _write(self, job: CpuJob, lowered: Lowered) -> None:
        with job.pte.open("wb") as file:
            lowered.program.write_to_file(file)
        if self.options.etrecord:
            from executorch.devtools import generate_etrecord

            path = job.pte.with_name(f"{job.pte.stem}_etrecord.bin")
            generate_etrecord(str(path), lowered.edge, lowered.program)

    def _report(
        self, job: CpuJob, lowered: Lowered, reference: Path, dtype: str, fixed: Fixed
    ) -> dict[str, Any]:
        from aot.cortex_a.report import Compilation, build_report

        static = dtype == CpuDtype.INT8.value
        report = build_report(
            Compilation(
                model=self.model,
                job=job,
                dtype=dtype,
                calibration=self._calibration if static else None,
                lowered=lowered,
                fixed=fixed,
                reference=reference,
                examples=self._write_examples(job),
                labels=self._write_labels(job),
                preprocessing=self._image.to_json() if self._image else None,
                seconds=self._seconds,
            )
        )
        job.report_path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        return report

    def _write_examples(self, job: CpuJob) -> list[Path]:
        import numpy as np
        from torch.utils._pytree import tree_leaves

        paths = []
        for number, tensor in enumerate(tree_leaves((self.model.inputs, dict(self.model.kwargs)))):
            paths.append(job.artefacts / f"input-{number}.npy")
            np.save(paths[-1], tensor.detach().numpy())
        return paths

    def _write_labels(self, job: CpuJob) -> Path | None:
        if not self.model.labels:
            return None
        path = job.artefacts / "labels.txt"
        path.write_text("\n".join(self.model.labels) + "\n", encoding="utf-8")
        return path

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self._seconds[stage] = round(time.monotonic() - start, 3)

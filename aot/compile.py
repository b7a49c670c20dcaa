# SPDX-License-Identifier: Apache-2.0
"""``armdeploy compile``, ``python aot/compile.py`` and ``python -m aot.compile``: one program.

The options keep the names of ExecuTorch's aot_arm_compiler; quantising and delegating are on by default.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__" and not __package__:  # started as a file: aot/ itself must not be on the path
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from aot._bootstrap import ensure

if __name__ == "__main__":
    ensure(("torch", "executorch", "ethosu", "tosa_serializer", "numpy"))

from aot.cortex_a import compile as cortex_a
from aot.model_names import check_source
from aot.options import Dtype, Job, Options, parse_dtype
from aot.targets import DEFAULT_TARGET, find_targets
from aot.vela_config import VelaSettings, resolve_settings
from npu.config import NpuConfig
from report.arguments import Parser, guarded
from report.compile_report import SCHEMA_VERSION
from report.cortex_a import find_cpu_targets, is_cortex_a
from report.errors import EnvironmentError_, UsageError
from report.quiet import quiet

DEFAULT_MODEL = "ds_cnn"

_PROGRAM_SUFFIXES = (".pte", ".bpte")
_EXTRA = 'pip install "executorch[ethos-u]==1.5.1"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``compile`` to `parser`; every name with an underscore also works with a hyphen."""
    add_compile_options(parser)
    group = parser.add_argument_group("output")
    _add(group, "-o", "--output", default=".", metavar="PATH", help="a folder, or the .pte (.bpte) itself")
    _add(group, "--json", action="store_true", help="print one JSON document with the reports")


def add_compile_options(parser: argparse.ArgumentParser, targets: str = DEFAULT_TARGET) -> None:
    """The options that say what to compile and how, shared with other verbs; `targets` if none is given."""
    _add_model_arguments(parser.add_argument_group("model"))
    _add_target_arguments(parser.add_argument_group("target"), targets)
    add_layout_arguments(parser.add_argument_group("layout"))
    _add_artefact_arguments(parser.add_argument_group("artefacts"))


def _add(group: Any, *names: str, **options: Any) -> None:
    spellings = dict.fromkeys(spelling for name in names for spelling in (name, _hyphenated(name)))
    group.add_argument(*spellings, **options)


def _hyphenated(name: str) -> str:
    return name[:2] + name[2:].replace("_", "-")


def _add_model_arguments(group: Any) -> None:
    _add(
        group,
        "-m",
        "--model",
        "--model_name",
        dest="model",
        help="a bundled example, FILE.py, FILE.pt2 or torchvision:NAME",
    )
    _add(group, "--model_input", metavar="FILE.pt", help="example inputs in place of the model's own")
    _add(group, "-q", "--quantize", dest="quantize", action="store_true", default=True, help="the default")
    _add(group, "--no_quantize", dest="quantize", action="store_false", help="keep float")
    _add(
        group,
        "--dtype",
        default="int8",
        help="int8 (default), a16w8 (Ethos-U), fp32, fp16, int8-dynamic (Cortex-A)",
    )
    _add(
        group,
        "--calibration_data",
        metavar="PATH",
        help="a .pt, .npy, .png or .jpg file, or a folder of them (at most 1000 are used)",
    )
    _add(group, "--preprocess", metavar="SPEC", help="for images: mean=M,M,M;std=S,S,S of pixels in 0..1")
    _add(group, "--non_strict_export", dest="strict", action="store_false", help="torch.export strict=False")


def _add_target_arguments(group: Any, targets: str) -> None:
    _add(
        group,
        "-t",
        "--target",
        action="append",
        metavar="TARGET",
        help=f"ethos-u55|u65|u85[-MACS] or cortex-a[-sme2|-sme|-neon], several with commas or by repeating "
        f"(default {targets})",
    )
    _add(group, "-d", "--delegate", dest="delegate", action="store_true", default=True, help="the default")
    _add(group, "--no_delegate", dest="delegate", action="store_false", help="everything on the CPU")
    _add(group, "--system_config", help="Vela system configuration (default by NPU family)")
    _add(group, "--memory_mode", help="Vela memory mode (default by NPU family)")
    _add(group, "--config", metavar="INI", help="Vela configuration file (default Arm/vela.ini)")


def add_layout_arguments(group: Any) -> None:
    """The options that say which operators XNNPACK gets and in which form."""
    _add(
        group,
        "--fix_layout",
        action="store_true",
        help="Cortex-A: a normalisation that folds into no convolution becomes a depthwise 1x1 one",
    )
    _add(
        group,
        "--approximate_gelu",
        action="store_true",
        help="Cortex-A, fp16: GELU becomes x * sigmoid(1.702 x), which XNNPACK takes; changes the outputs",
    )
    _add(
        group,
        "--keep_out",
        action="append",
        default=[],
        metavar="OPERATOR",
        help="Cortex-A: XNNPACK must not take this operator (batch_norm, gelu …), several with commas",
    )


def _add_artefact_arguments(group: Any) -> None:
    _add(group, "-i", "--intermediates", metavar="DIR", help="keep the program, TOSA and Vela files here")
    _add(group, "--bundleio", action="store_true", help="write a .bpte with inputs and reference outputs")
    _add(group, "--etrecord", action="store_true", help="write an ETRecord for ExecuTorch's Inspector")
    _add(
        group,
        "--quantization_loss",
        action="store_true",
        help="report what each layer loses by quantisation: SQNR in dB, cosine",
    )
    _add(
        group,
        "--enable_debug_mode",
        choices=("json", "tosa"),
        help="operator mapping and Vela's debug database (needs -i)",
    )


def run(args: argparse.Namespace) -> int:
    """Compile as `args` say; the result goes to stdout, progress to stderr.

    Raises:
        ArmdeployError: with the exit code that belongs to it.
    """
    reports = []
    for _, report in compile_models(args):
        reports.append(report)
        if not args.json:
            print(_summary(report), flush=True)
    if args.json:
        print(json.dumps({"schema_version": SCHEMA_VERSION, "reports": reports}, indent=2))
    return 0


def compile_models(args: argparse.Namespace) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Compile for each target in turn; yields the program's path and its compile report.

    Every option is checked before the first target is compiled.

    Raises:
        ArmdeployError: with the exit code that belongs to it.
    """
    if cpus := find_cpu_targets(args.target or []):
        yield from cortex_a.compile_models(args, cpus, DEFAULT_MODEL, _say)
        return
    targets = find_targets(args.target or [DEFAULT_TARGET])
    options = _options(args)
    _check_output(args.output, targets, options)
    check_source(args.model or DEFAULT_MODEL)  # before the imports, which take seconds
    _check_tools()
    settings = [
        resolve_settings(target, args.system_config, args.memory_mode, args.config) for target in targets
    ]
    if args.model is None:
        _say(f"no --model given: compiling the bundled example {DEFAULT_MODEL}")
    _import_tools()
    from aot.models import load_model
    from aot.pipeline import Compiler

    with contextlib.redirect_stdout(sys.stderr):  # stdout is for results, whatever a model file prints
        model = load_model(args.model or DEFAULT_MODEL, args.model_input)
    compiler = Compiler(model, options, _say)
    for target, chosen in zip(targets, settings, strict=True):
        kept = (
            Path(args.intermediates, target.name if len(targets) > 1 else "") if args.intermediates else None
        )
        job = _job(args.output, kept, model.name, target, chosen, options)
        with contextlib.redirect_stdout(sys.stderr):
            report = compiler.compile(job)
        _say(f"wrote {job.pte} and {job.report_path.name}")
        yield job.pte, report


def _summary(report: dict[str, Any]) -> str:
    from aot.cortex_a import report as cortex_a_report
    from aot.summary import summary

    return cortex_a_report.summary(report) if is_cortex_a(report["target"]) else summary(report)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""

    def body() -> int:
        parser = Parser(prog="compile", description="Compile a PyTorch model for an Arm Ethos-U.")
        add_arguments(parser)
        return run(parser.parse_args(argv))

    return guarded("compile", body)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _check_tools() -> None:
    for module in ("torch", "executorch", "ethosu.vela", "tosa_serializer"):
        if _missing(module):
            raise EnvironmentError_(f"no module {module!r}", where="compile", hint=_EXTRA)


def _missing(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True


def _import_tools() -> None:
    """Import ExecuTorch once, without the notices that torch and torchao print while loading."""
    if "executorch.backends.arm.ethosu" in sys.modules:
        return
    warnings.filterwarnings("ignore", category=FutureWarning)
    with quiet():
        import executorch.backends.arm.ethosu
        import executorch.backends.arm.quantizer  # noqa: F401
    gc.freeze()  # these packages leave millions of objects, which every collection would visit


_FOR_CORTEX_A = ("fix_layout", "approximate_gelu", "keep_out")
"""Options that mean nothing to an NPU's compiler."""


def _options(args: argparse.Namespace) -> Options:
    for name in _FOR_CORTEX_A:
        if getattr(args, name, None):
            raise UsageError(f"--{name.replace('_', '-')} is for Cortex-A targets", where="--target ethos-u")
    if args.calibration_data and not args.quantize:
        raise UsageError("--calibration_data needs quantisation", hint="leave --no-quantize out")
    if args.enable_debug_mode and not args.intermediates:
        raise UsageError("--enable_debug_mode needs a folder", hint="add -i DIR")
    return Options(
        quantize=args.quantize,
        delegate=args.delegate,
        dtype=parse_dtype(args.dtype),
        strict=args.strict,
        calibration_data=args.calibration_data,
        preprocess=args.preprocess,
        keep_intermediates=args.intermediates is not None,
        bundleio=args.bundleio,
        etrecord=args.etrecord,
        quantization_loss=args.quantization_loss,
        debug_mode=args.enable_debug_mode,
    )


def _check_output(output: str, targets: Sequence[NpuConfig], options: Options) -> None:
    """Refuse an output that cannot be: a wrong suffix, one file for several targets, a folder in a file."""
    path = Path(output)
    folder = path
    if path.suffix in _PROGRAM_SUFFIXES:
        folder = path.parent
        if path.suffix != options.suffix:
            hint = "--bundleio writes .bpte files, and nothing else does"
            raise UsageError(f"{output} does not end in {options.suffix}", where="--output", hint=hint)
        if len(targets) > 1:
            raise UsageError("one file for several targets", where="--output", hint="give a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot create {folder}", where="--output", why=str(error.strerror)) from error


def _job(
    output: str, kept: Path | None, model: str, target: NpuConfig, settings: VelaSettings, options: Options
) -> Job:
    """The output that `-o` names, or ``MODEL_arm_delegate_TARGET.pte`` in the folder that it names."""
    pte = Path(output)
    if pte.suffix not in _PROGRAM_SUFFIXES:
        kind = "" if options.dtype is Dtype.INT8 else f"_{options.dtype.value}"
        delegate = "_arm_delegate_" if options.delegate else "_arm_"
        pte /= f"{model}{kind}{delegate}{target.name}{options.suffix}"
    artefacts = kept or pte.with_name(f"{pte.stem}_artifacts")
    artefacts.mkdir(parents=True, exist_ok=True)
    return Job(target, settings, pte, artefacts)


if __name__ == "__main__":
    sys.exit(main())

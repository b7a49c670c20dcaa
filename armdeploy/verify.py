# SPDX-License-Identifier: Apache-2.0
"""``armdeploy verify FILE``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aot import compile as aot_compile
from aot.targets import DEFAULT_TARGET, find_targets
from aot.vela_config import resolve_settings
from aot.vela_file import SUFFIXES, compile_file
from fvp import verify
from fvp.bundle_check import MAX_STEPS
from fvp.oracle import oracle_for
from report import verify_text
from report.errors import OutputMismatch, UsageError

_PROGRAMS = (".pte", ".bpte")
_MODELS = ("", ".py", ".pt2", ".pt", ".pth")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: those of compile, for models, and its own."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help=".tosa, .tflite or a model as --model takes it, which are compiled; .pte, .bpte; .npz of Vela",
    )
    aot_compile.add_compile_options(parser)
    group = parser.add_argument_group("verify")
    group.add_argument("--reference", type=Path, metavar="FILE", help="what the .npz was compiled from")
    group.add_argument("--count", type=int, default=10, metavar="N", help="sets of random inputs (10)")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first set (0)")
    group.add_argument(
        "--bisect",
        action="store_true",
        help="compare every tensor in memory, and float with quantised layer by layer",
    )
    group.add_argument(
        "--bundle-steps",
        type=int,
        default=MAX_STEPS,
        metavar="N",
        help=f"quantisation steps that outputs bundled in a .bpte, PyTorch's, may be away ({MAX_STEPS})",
    )
    group.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Compile, execute, compare; 0 only when every output is equal, bundled ones within their steps."""
    if arguments.count < 1 or arguments.bundle_steps < 0:
        raise UsageError("--count must be positive, and --bundle-steps not negative")
    if (arguments.file is None) == (arguments.model is None):
        raise UsageError("give either FILE or --model")
    request = verify.Request(arguments.count, arguments.seed, arguments.bisect, arguments.bundle_steps)
    with tempfile.TemporaryDirectory(prefix="armdeploy-verify-") as folder:
        subjects = _subjects(arguments, Path(folder))
        verdicts = [verify.verify(each, request, Path(folder)) for each in subjects]
    document = {"schema_version": verify.SCHEMA_VERSION, "files": verdicts}
    print(json.dumps(document, indent=2) if arguments.json else verify_text.to_text(verdicts))
    wrong = [verdict["file"] for verdict in verdicts if verdict["result"] == "different"]
    if wrong:
        error = OutputMismatch(f"{', '.join(wrong)}: not what the reference computes")
        print(f"armdeploy verify: error: {error.one_line()}", file=sys.stderr)
        return error.exit_code
    return 0


def _subjects(arguments: argparse.Namespace, folder: Path) -> Iterator[verify.Subjects]:
    """What there is to compare, compiled if need be."""
    path = Path(arguments.file or arguments.model)
    if path.suffix in (*_PROGRAMS, ".npz") and arguments.target:
        raise UsageError("--target is for files that are compiled", hint=f"{path.name} names its own")
    if path.suffix in _PROGRAMS:
        yield verify.program_subjects(path)
    elif path.suffix == ".npz":
        yield _raw(path, arguments)
    elif path.suffix in SUFFIXES:
        yield from _compiled(path, arguments, folder)
    elif path.suffix in _MODELS or str(path).startswith("torchvision:"):
        arguments.model, arguments.output = str(path), str(folder)
        arguments.quantization_loss |= arguments.bisect
        for program, _ in aot_compile.compile_models(arguments):
            yield verify.program_subjects(program)
    else:
        raise UsageError(f"no reference for {path.suffix} files", where=str(path))


def _raw(path: Path, arguments: argparse.Namespace) -> verify.Subjects:
    if arguments.reference is None:
        hint = "give the .tosa or .tflite it was compiled from with --reference"
        raise UsageError("no reference", where=str(path), hint=hint)
    return verify.raw_subjects(path, arguments.reference)


def _compiled(path: Path, arguments: argparse.Namespace, folder: Path) -> Iterator[verify.Subjects]:
    oracle = oracle_for(path)
    for target in find_targets(arguments.target or [DEFAULT_TARGET]):
        settings = resolve_settings(target, arguments.system_config, arguments.memory_mode, arguments.config)
        compiled = compile_file(path, target, settings, folder / target.name)
        yield verify.compiled_subjects(path, oracle, compiled.network, compiled.debug_database)

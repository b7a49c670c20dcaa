# SPDX-License-Identifier: Apache-2.0
"""``armdeploy run`` and ``./fvp/run.sh``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aot import compile as aot_compile
from aot.targets import find_targets
from fvp.platforms import AUTO, PLATFORMS
from fvp.virtual.run import FIRMWARES
from report.cortex_a import find_cpu_targets
from report.errors import ArmdeployError, UsageError

if TYPE_CHECKING:
    from fvp.inference import Request
    from report.record import RunRecord

_TIMEOUT = 60.0
_COUNTING_TIMEOUT = 600.0
"""Seconds a platform may take; an emulator that logs every block is slow."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: those of compile, for ``--model``, and its own."""
    parser.add_argument(
        "--pte", type=Path, metavar="FILE", help="run this .pte or .bpte in place of compiling"
    )
    aot_compile.add_compile_options(parser)
    group = parser.add_argument_group("run")
    group.add_argument(
        "--input",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help=".npy, .pt, .bin, .png or .jpg; once an input",
    )
    group.add_argument("--seed", type=int, help="random input in place of the model's example input")
    group.add_argument("--platform", default=AUTO, help=f"{AUTO} (default), {' or '.join(PLATFORMS)}")
    group.add_argument(
        "--runner", metavar="NAME", help=f"firmware of the virtual board: {' or '.join(FIRMWARES)} (Arm's)"
    )
    group.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="limit for the platform (60; a Cortex-A 600)"
    )
    group.add_argument(
        "--labels", type=Path, metavar="FILE", help="class names, one a line (default: the model's)"
    )
    group.add_argument("--top", type=int, default=5, metavar="N", help="how many classes to print (5)")
    group.add_argument("-v", "--verbose", action="store_true", help="the platform's console on stderr")
    group.add_argument(
        "-o", "--output", type=Path, default=Path("out"), metavar="DIR", help="folder for all files (out)"
    )
    group.add_argument("--json", action="store_true", help="print the run record, one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Compile when no .pte is given, run each target, print; the exit code is the worst run's."""
    if (arguments.timeout is not None and arguments.timeout <= 0) or arguments.top < 1:
        raise UsageError("--timeout and --top must be positive")
    if arguments.pte is not None and arguments.model is not None:
        raise UsageError("--pte and --model exclude each other")
    if arguments.json and len(_targets(arguments.target or [])) > 1:
        raise UsageError("--json prints one run record", hint="give one target")
    programs = [arguments.pte] if arguments.pte else (pte for pte, _ in aot_compile.compile_models(arguments))
    return max(_run_one(arguments, program) for program in programs)


def _targets(names: list[str]) -> Sequence[object]:
    return find_cpu_targets(names) or find_targets(names)


def _run_one(arguments: argparse.Namespace, program: Path) -> int:
    from fvp import inference
    from fvp.aarch64 import study
    from report import run_text

    request = _request(arguments, program)
    labels = run_text.read_labels(arguments.labels or inference.labels_of(program))
    if study.is_for_cortex_a(program, request.target):
        return _run_cortex_a(arguments, request, labels)
    result = inference.infer(request)
    text = (
        result.record.to_json()
        if arguments.json
        else run_text.to_text(result.record, result.outputs, labels, arguments.top)
    )
    return _finish(text, result.record, result.error)


def _run_cortex_a(arguments: argparse.Namespace, request: Request, labels: list[str]) -> int:
    from fvp.aarch64 import study
    from report import cpu_text

    if arguments.timeout is None:
        request = dataclasses.replace(request, timeout=_COUNTING_TIMEOUT)
    result = study.infer(request)
    text = (
        result.record.to_json()
        if arguments.json
        else cpu_text.to_text(result.record, result.profiles, result.outputs, labels, arguments.top)
    )
    return _finish(text, result.record, result.error)


def _finish(text: str, record: RunRecord, error: ArmdeployError | None) -> int:
    print(text)
    if error is not None:
        print(f"armdeploy run: error: {error.one_line()}", file=sys.stderr)
    return record.exit.code


def _request(arguments: argparse.Namespace, program: Path) -> Request:
    from fvp import inference

    return inference.Request(
        pte=program,
        target=arguments.target[0] if arguments.pte and arguments.target else None,
        input_files=tuple(arguments.input),
        seed=arguments.seed,
        platform=arguments.platform,
        runner=arguments.runner,
        timeout=arguments.timeout or _TIMEOUT,
        verbose=arguments.verbose,
        output_dir=Path(arguments.output),
    )

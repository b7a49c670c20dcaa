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
from fvp.aarch64.options import CpuRun, parse_threads
from fvp.platforms import AUTO, PLATFORMS
from fvp.virtual.run import FIRMWARES
from report import pte
from report.cortex_a import find_cpu_targets
from report.errors import UsageError

if TYPE_CHECKING:
    from fvp.aarch64.study import Study
    from fvp.inference import Request, Result

_TIMEOUT = 60.0
_COUNTING_TIMEOUT = 600.0
"""Seconds a platform may take; an emulator that logs every block is slow."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: those of compile, for ``--model``, and its own."""
    parser.add_argument(
        "--pte", type=Path, metavar="FILE", help="run this .pte or .bpte in place of compiling"
    )
    aot_compile.add_compile_options(parser)
    add_run_arguments(parser)
    group = parser.add_argument_group("result")
    group.add_argument(
        "--labels", type=Path, metavar="FILE", help="class names, one a line (default: the model's)"
    )
    group.add_argument("--top", type=int, default=5, metavar="N", help="how many classes to print (5)")
    group.add_argument("--json", action="store_true", help="print the run record, one JSON document")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say how to run a program, shared with ``compare``."""
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
    group.add_argument("-v", "--verbose", action="store_true", help="the platform's console on stderr")
    group.add_argument(
        "-o", "--output", type=Path, default=Path("out"), metavar="DIR", help="folder for all files (out)"
    )
    _add_cpu_arguments(parser.add_argument_group("run on a Cortex-A"))


def _add_cpu_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--threads", default="1", metavar="N,…", help="numbers of threads, each is run (1)")
    group.add_argument("--warmup", type=int, metavar="N", help="inferences before those that are timed (3)")
    group.add_argument("--repetitions", type=int, metavar="N", help="inferences that are timed (10)")
    group.add_argument("--serial", metavar="ID", help="the phone, as adb devices lists it")
    group.add_argument("--host", metavar="USER@MACHINE", help="the machine that --platform ssh reaches")
    group.add_argument("--pinned", action="store_true", help="keep to the fastest cores, as many as threads")


def run(arguments: argparse.Namespace) -> int:
    """Compile when no .pte is given, run each target, print; the exit code is the worst run's."""
    if arguments.top < 1:
        raise UsageError("--top must be positive")
    if arguments.pte is not None and arguments.model is not None:
        raise UsageError("--pte and --model exclude each other")
    options = _cpu_options(arguments)
    if arguments.target and not find_cpu_targets(arguments.target):
        options.require((), f"--target {arguments.target[0]}")  # before anything is compiled
    if arguments.json and len(_targets(arguments.target or [])) > 1:
        raise UsageError("--json prints one run record", hint="give one target")
    programs = (
        [arguments.pte] if arguments.pte else (path for path, _ in aot_compile.compile_models(arguments))
    )
    return max(_run_one(arguments, program) for program in programs)


def _targets(names: list[str]) -> Sequence[object]:
    return find_cpu_targets(names) or find_targets(names)


def infer(arguments: argparse.Namespace, program: Path) -> Result | Study:
    """Run one program on the platform that the options name, or that suits it.

    Raises:
        UsageError, EnvironmentError_: nothing was run.
    """
    from fvp import inference
    from fvp.aarch64 import study

    request, options = _request(arguments, program), _cpu_options(arguments)
    if study.is_for_cortex_a(program, request.target):
        if arguments.timeout is None:
            request = dataclasses.replace(request, timeout=_COUNTING_TIMEOUT)
        return study.infer(request, options)
    options.require((), f"--target {request.target or 'ethos-u'}")
    return inference.infer(request)


def _run_one(arguments: argparse.Namespace, program: Path) -> int:
    pte.load(program)  # refuses what is no program before the imports, which take seconds
    from fvp import inference
    from report import run_text

    labels = run_text.read_labels(arguments.labels or inference.labels_of(program))
    done = infer(arguments, program)
    print(done.record.to_json() if arguments.json else _text(done, labels, arguments.top))
    if done.error is not None:
        print(f"armdeploy run: error: {done.error.one_line()}", file=sys.stderr)
    return done.record.exit.code


def _text(done: Result | Study, labels: list[str], top: int) -> str:
    from fvp.aarch64.study import Study
    from report import cpu_text, run_text

    if isinstance(done, Study):
        return cpu_text.to_text(done.record, done.profiles, done.outputs, labels, top)
    return run_text.to_text(done.record, done.outputs, labels, top)


def _cpu_options(arguments: argparse.Namespace) -> CpuRun:
    if arguments.timeout is not None and arguments.timeout <= 0:
        raise UsageError("--timeout must be positive")
    counts = {"--warmup": (arguments.warmup, 0), "--repetitions": (arguments.repetitions, 1)}
    for option, (given, least) in counts.items():
        if given is not None and given < least:
            raise UsageError(f"{option} is at least {least}")
    return CpuRun(
        threads=parse_threads(arguments.threads),
        warmup=arguments.warmup,
        repetitions=arguments.repetitions,
        serial=arguments.serial,
        host=arguments.host,
        pinned=arguments.pinned,
    )


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

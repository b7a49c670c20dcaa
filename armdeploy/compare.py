# SPDX-License-Identifier: Apache-2.0
"""``armdeploy compare``: one model on several targets, or run records of any."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from aot import compile as aot_compile
from aot.targets import find_targets
from armdeploy import run as run_verb
from report import comparison, comparison_html, comparison_text
from report.arguments import numbers_by_name
from report.comparison import Run
from report.cortex_a import find_cpu_targets, is_cortex_a
from report.errors import ArmdeployError, UsageError
from report.files import write_text

DEFAULT_TARGETS = "ethos-u55-128,ethos-u65-256,ethos-u85-256"
"""One of each family."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: records, or those of compile and run with several targets."""
    parser.add_argument(
        "records",
        type=Path,
        nargs="*",
        metavar="RECORD",
        help="what run --json or compare has written; none: compile and run --model on each --target",
    )
    aot_compile.add_compile_options(parser, DEFAULT_TARGETS)
    run_verb.add_run_arguments(parser)
    group = parser.add_argument_group("compare")
    group.add_argument(
        "--clock",
        action="append",
        default=[],
        metavar="MHZ",
        help="of the NPU, or TARGET=MHZ, repeatable: its cycles as time too",
    )
    group.add_argument("--html", type=Path, metavar="FILE", help="also write one page with charts")
    group.add_argument("--json", action="store_true", help="print the comparison, one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Compare; the exit code is that of the worst run."""
    clocks = numbers_by_name(arguments.clock, "--clock", "MHZ or TARGET=MHZ")
    if 0 in clocks.values():
        raise UsageError("a clock is more than 0", where="--clock")
    if arguments.records and (arguments.model is not None or arguments.target):
        raise UsageError("records and --model or --target exclude each other")
    found = (
        [each for path in arguments.records for each in comparison.read(path)]
        if arguments.records
        else list(_made(arguments))
    )
    runs = comparison.distinct(found)
    document = comparison.document(runs, clocks)
    if arguments.html is not None:
        write_text(arguments.html, comparison_html.to_html(document))
    print(json.dumps(document, indent=2) if arguments.json else comparison_text.to_text(document))
    return max(each.exit_code for each in runs)


# --- one model on several targets ---------------------------------------------------------------------------


def _made(arguments: argparse.Namespace) -> Iterator[Run]:
    """Compile and run for each target; what fails is told and does not keep the others from running.

    NPUs come first, since each kind has a compiler of its own.
    """
    names = [part.strip() for word in arguments.target or [DEFAULT_TARGETS] for part in word.split(",")]
    kinds = (
        [target.name for target in find_targets([name for name in names if name and not is_cortex_a(name)])],
        [target.name for target in find_cpu_targets([name for name in names if is_cortex_a(name)])],
    )
    for targets in kinds:
        for target, outcome in _compiled(arguments, targets):
            yield from _run(arguments, target, outcome)


def _compiled(
    arguments: argparse.Namespace, targets: Sequence[str]
) -> Iterator[tuple[str, Path | ArmdeployError]]:
    """A program, or why there is none, for each target of one kind."""
    remaining = list(targets)
    while remaining:
        try:
            of_these = argparse.Namespace(**{**vars(arguments), "target": list(remaining), "pte": None})
            for program, _ in aot_compile.compile_models(of_these):
                yield remaining.pop(0), program
        except UsageError:
            raise
        except ArmdeployError as error:
            yield remaining.pop(0), error


def _run(arguments: argparse.Namespace, target: str, outcome: Path | ArmdeployError) -> Iterator[Run]:
    model = arguments.model or aot_compile.DEFAULT_MODEL
    if isinstance(outcome, Path):
        try:
            print(f"running on {target}", file=sys.stderr)
            record = run_verb.infer(argparse.Namespace(**{**vars(arguments), "pte": None}), outcome).record
        except UsageError:
            raise
        except ArmdeployError as error:
            outcome = error
        else:
            path = outcome.with_name(f"{outcome.stem}.record.json")
            write_text(path, record.to_json() + "\n")
            yield from comparison.read(path)
            return
    yield comparison.failure(Path(model).stem, target, arguments.dtype, outcome)

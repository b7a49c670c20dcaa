# SPDX-License-Identifier: Apache-2.0
"""``armdeploy compare``: one model on several targets, or run records of any."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from aot import compile as aot_compile
from aot.targets import find_targets
from armdeploy import run as run_verb
from report import comparison, comparison_html, comparison_text, runs
from report.arguments import numbers_by_name
from report.cortex_a import find_cpu_targets, is_cortex_a
from report.errors import ArmdeployError, UsageError
from report.files import write_text
from report.runs import Run

DEFAULT_TARGETS = "ethos-u55-128,ethos-u65-256,ethos-u85-256"
"""One of each family."""

_SLOWEST = 0.001
"""MHz."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: records, or those of compile and run with several targets."""
    parser.add_argument(
        "records",
        type=Path,
        nargs="*",
        metavar="RECORD",
        help="what run --json has printed, or a .record.json of compare; none: compile and run --model",
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
    found = _read(arguments, clocks) if arguments.records else _made(arguments, clocks)
    distinct = comparison.distinct(found)
    document = comparison.document(distinct, clocks)
    if arguments.html is not None:
        write_text(arguments.html, comparison_html.to_html(document))
    print(json.dumps(document, indent=2) if arguments.json else comparison_text.to_text(document))
    return max(each.exit_code for each in distinct)


_WITH_RECORDS = ("records", "clock", "html", "json", "verb", "parser")


def _read(arguments: argparse.Namespace, clocks: Mapping[str, float]) -> list[Run]:
    """Raises UsageError for an option that says how to compile or run."""
    for name, value in vars(arguments).items():
        if name not in _WITH_RECORDS and value != arguments.parser.get_default(name):
            raise UsageError(f"--{name} means nothing beside records", where="compare")
    found = [each for path in arguments.records for each in runs.read(path)]
    _check_clocks(clocks, {each.target for each in found})
    return found


def _check_clocks(clocks: Mapping[str, float], targets: Collection[str]) -> None:
    for target, mhz in clocks.items():
        if target and target not in targets:
            hint = f"targets: {', '.join(sorted(targets))}"
            raise UsageError(f"no run on {target!r}", where="--clock", hint=hint)
        if mhz < _SLOWEST:
            raise UsageError(f"a clock is at least {_SLOWEST} MHz", where="--clock")


# --- one model on several targets ---------------------------------------------------------------------------


def _made(arguments: argparse.Namespace, clocks: Mapping[str, float]) -> list[Run]:
    """Compile and run for each target; what fails is told and does not keep the others from running.

    NPUs come first, since each kind has a compiler of its own.

    Raises:
        UsageError: a wrong target, or nothing but usage errors.
    """
    names = [part.strip() for word in arguments.target or [DEFAULT_TARGETS] for part in word.split(",")]
    kinds = (
        [target.name for target in find_targets([name for name in names if name and not is_cortex_a(name)])],
        [target.name for target in find_cpu_targets([name for name in names if is_cortex_a(name)])],
    )
    if not any(kinds):
        raise UsageError("no target", where="--target", hint="see armdeploy targets")
    _check_clocks(clocks, [target for kind in kinds for target in kind])
    found: list[Run] = []
    errors: list[ArmdeployError] = []
    for target, outcome in (each for kind in kinds for each in _compiled(arguments, kind)):
        try:
            found += _run(arguments, target, outcome)
        except ArmdeployError as error:
            errors.append(error)
            name = Path(arguments.model or aot_compile.DEFAULT_MODEL).stem
            found.append(runs.failure(name, target, arguments.dtype, error))
    if len(errors) == len(found) and isinstance(errors[0], UsageError):
        raise errors[0]
    return found


def _compiled(
    arguments: argparse.Namespace, targets: Sequence[str]
) -> Iterator[tuple[str, Path | ArmdeployError]]:
    """A program, or why there is none, for each target of one kind.

    One compilation shares the export; if it refuses its options, each target is asked alone.
    """
    remaining = list(targets)
    while remaining:
        try:
            for program, _ in aot_compile.compile_models(_for(arguments, list(remaining))):
                yield remaining.pop(0), program
        except UsageError as error:
            if len(remaining) > 1:
                for target in remaining:
                    yield from _compiled(arguments, [target])
                return
            yield remaining.pop(0), error
        except ArmdeployError as error:
            yield remaining.pop(0), error


def _run(arguments: argparse.Namespace, target: str, program: Path | ArmdeployError) -> list[Run]:
    """The program's runs; its record and its outputs are kept beside it."""
    if isinstance(program, ArmdeployError):
        raise program
    print(f"running on {target}", file=sys.stderr)
    folder = program.with_name(f"{program.stem}_outputs")
    record = run_verb.infer(_for(arguments, None, output=folder), program).record
    path = program.with_name(f"{program.stem}.record.json")
    write_text(path, record.to_json() + "\n")
    return runs.read(path)


def _for(arguments: argparse.Namespace, targets: list[str] | None, **changes: object) -> argparse.Namespace:
    """The arguments as compile and run take them."""
    return argparse.Namespace(**{**vars(arguments), "target": targets, "pte": None, **changes})

# SPDX-License-Identifier: Apache-2.0
"""``armdeploy check RECORD``: gates for CI."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from report import gate
from report.arguments import numbers_by_name
from report.errors import BudgetError, RunFailed, UsageError
from report.files import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("record", type=Path, metavar="RECORD", help="of run --json or compare")
    parser.add_argument("--baseline", type=Path, metavar="RECORD", help="an earlier run: nothing may grow")
    parser.add_argument(
        "--max",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="largest value of a counter, program_bytes, ram_bytes, cpu_operators, cpu_kernels or delegates",
    )
    parser.add_argument(
        "--tolerance",
        action="append",
        default=[],
        metavar="PERCENT",
        help="growth that is no regression, or NAME=PERCENT; repeatable (0)",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write the gates as JUnit's XML")
    parser.add_argument("--json", action="store_true", help="print the verdict, one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Check and print.

    Raises:
        RunFailed: the record is of a run that failed. BudgetError: a gate does not hold.
    """
    if not arguments.baseline and not arguments.max:
        raise UsageError("nothing to check", where="check", hint="give --max NAME=VALUE or --baseline RECORD")
    limits = numbers_by_name(arguments.max, "--max", "NAME=VALUE", named=True)
    tolerances = numbers_by_name(arguments.tolerance, "--tolerance", "PERCENT or NAME=PERCENT")
    now = gate.read(arguments.record)
    before = gate.read(arguments.baseline) if arguments.baseline else None
    found = gate.document(now, before, gate.check(now, before, limits, tolerances))
    if arguments.junit is not None:
        write_text(arguments.junit, gate.to_junit(found))
    print(json.dumps(found, indent=2) if arguments.json else gate.to_text(found))
    failed = [each["name"] for each in found["gates"] if not each["passed"]]
    if now.run.failed:
        raise RunFailed("the run failed", where=str(arguments.record), why=now.run.output)
    if failed:
        what = f"{len(failed)} of {len(found['gates'])} gates failed"
        raise BudgetError(what, where=str(arguments.record), why=", ".join(failed))
    return 0

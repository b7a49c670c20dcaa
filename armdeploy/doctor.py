# SPDX-License-Identifier: Apache-2.0
"""``armdeploy doctor``."""

from __future__ import annotations

import argparse

from fvp import doctor
from report.cortex_a import find_cpu_targets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument(
        "--target", action="append", default=[], help="what this target needs is required; cortex-a so far"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; exit code 3 when something required is missing."""
    findings = doctor.examine(cortex_a=bool(find_cpu_targets(arguments.target)))
    print(doctor.to_json(findings) if arguments.json else doctor.to_text(findings))
    return doctor.exit_code(findings)

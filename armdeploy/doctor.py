# SPDX-License-Identifier: Apache-2.0
"""``armdeploy doctor``."""

from __future__ import annotations

import argparse

from fvp import doctor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; exit code 3 when something required is missing."""
    findings = doctor.examine()
    print(doctor.to_json(findings) if arguments.json else doctor.to_text(findings))
    return doctor.exit_code(findings)

# SPDX-License-Identifier: Apache-2.0
"""``armdeploy VERB``: the one program behind compile.py and run.sh."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from report.arguments import EXIT_CODE_HELP, Parser, guarded
from report.record import tool_version

VERBS = {
    "compile": "lower a PyTorch model to a .pte for an Arm target and report what stays on the CPU",
    "run": "compile if needed, run on a platform and prove the output",
    "profile": "NPU cycles by operation, what bounds each, and the line of the model it comes from",
    "compare": "one model on several targets, or run records: what may be compared, side by side",
    "check": "gates for CI: budgets, and what may not grow against an earlier run",
    "inspect": "X-ray of a .pte, .tflite or Vela result: memory, operations, commands, where they come from",
    "verify": "compare a .tosa, .tflite or .pte with its reference, on request layer by layer",
    "targets": "list the targets with their defaults and who can run them",
    "doctor": "tell what is installed, what a missing piece disables and how to get it",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the process exit code."""
    return guarded("armdeploy", lambda: _dispatch(list(sys.argv[1:] if argv is None else argv)))


def _dispatch(argv: list[str]) -> int:
    parser = Parser(prog="armdeploy", description=__doc__, epilog=EXIT_CODE_HELP)
    parser.add_argument("--version", action="version", version=f"armdeploy {tool_version()}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, dest="verb", parser_class=Parser)
    for name, summary in VERBS.items():
        verb = verbs.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        verb.set_defaults(parser=verb)
        if name in argv[:1]:  # only the verb in question is imported: --help stays instant
            importlib.import_module(f"armdeploy.{name}").add_arguments(verb)
    arguments = parser.parse_args(argv)
    return importlib.import_module(f"armdeploy.{arguments.verb}").run(arguments)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""One run of a front end: command line in, application on the virtual Corstone, an FVP's words out."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from fvp.frontend import options, parameters, wording
from fvp.frontend.models import MODELS, Model
from fvp.frontend.options import Request
from fvp.frontend.parameters import Parameters
from report.errors import INTERRUPTED, ArmdeployError, UsageError

_ANSWERS = {"help": wording.usage, "version": wording.version, "list-params": wording.parameter_list}


def main(program: str, arguments: Sequence[str]) -> int:
    """Do what the command line of `program` asks for; its exit code."""
    model = MODELS[program]
    try:
        request = options.parse(arguments, model)
        for flag, answer in _ANSWERS.items():
            if flag in request.flags:
                print(answer(model))
                return 0
        return _run(model, request)
    except ArmdeployError as error:
        sys.stdout.flush()
        print(f"{program}: error: {error.one_line()}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # nobody reads on
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (the interpreter flushes it at its end)
        return ArmdeployError.exit_code


def _run(model: Model, request: Request) -> int:
    def say(text: str) -> None:
        print(f"{model.program}: {text}", file=sys.stderr)

    values = parameters.parse(request.assignments, model)
    _announce(request, values, say)
    if request.application is None:
        raise UsageError("no application", hint="give one with -a FILE")
    from fvp.frontend.simulation import simulate  # slow to import, and --version is asked often

    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    started = time.perf_counter()
    with _uart(values) as uart:
        end = simulate(model, request, values, uart, say)
    wall = time.perf_counter() - started
    if "quiet" not in request.flags:
        print(*wording.stop_lines(end.limit, end.virtual_seconds), sep="\n")
    if "stat" in request.flags:
        print(*wording.statistics(model, end.virtual_seconds, wall), sep="\n")
    return end.code


def _announce(request: Request, values: Parameters, say: Callable[[str], None]) -> None:
    """What has to be said before the application speaks."""
    say(wording.NOTICE)
    for option in request.ignored:
        say(f"warning: {option} has no effect here")
    for key in values.unknown:
        say(f"warning: parameter {key} is not known here; ignored")


def _uart(values: Parameters) -> contextlib.AbstractContextManager[TextIO]:
    """Where UART0 goes."""
    name = values.text("out_file")
    if name in ("-", ""):
        return contextlib.nullcontext(sys.stdout)
    try:
        return open(name, "w", encoding="utf-8", newline="")
    except OSError as error:
        raise UsageError(f"cannot write {name}", where="uart0.out_file", why=str(error.strerror)) from error

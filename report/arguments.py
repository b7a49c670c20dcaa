# SPDX-License-Identifier: Apache-2.0
"""The command line's common behaviour: usage errors with a suggestion, one-line errors, exit codes."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from report.errors import EXIT_CODES, INTERRUPTED, ArmdeployError, UsageError

EXIT_CODE_HELP = "exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())


class Parser(argparse.ArgumentParser):
    """ArgumentParser that raises `UsageError` and suggests the nearest option for a misspelt one.

    Options are never abbreviated: a script that works today must not become ambiguous tomorrow.
    """

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("epilog", EXIT_CODE_HELP)
        super().__init__(**kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` in place of printing the usage and leaving the process."""
        prefix, _, words = message.partition("unrecognized arguments: ")
        hint = self._suggestion(words.split()) if not prefix and words else ""
        raise UsageError(message, hint=hint or f"see {self.prog} --help")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, refusing unknown options with the suggestion of the parser that knows them."""
        namespace, unknown = self.parse_known_args(args, namespace)
        if unknown:
            getattr(namespace, "parser", self).error(f"unrecognized arguments: {' '.join(unknown)}")
        return namespace

    def _suggestion(self, words: list[str]) -> str:
        known = [option for action in self._actions for option in action.option_strings]
        for word in words:
            near = difflib.get_close_matches(word.split("=")[0], known, n=1)
            if near:
                return f"did you mean {near[0]}?"
        return ""


def numbers_by_name(words: Sequence[str], option: str, form: str, *, named: bool = False) -> dict[str, float]:
    """From words ``NUMBER`` and ``NAME=NUMBER``: the numbers by name, under "" that without one.

    Args:
        option: that has the words, `form` how they are to be written, for the error.
        named: a number needs a name.

    Raises:
        UsageError: a word of another form, a number that is negative or infinite, or a name twice.
    """
    found: dict[str, float] = {}
    for word in words:
        name, _, number = word.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf or (named and not name):
            raise UsageError(f"{word!r} is not {form}", where=option)
        if name in found:
            raise UsageError(f"{word!r} is the second for {name or 'all'}", where=option)
        found[name] = value
    return found


def guarded(program: str, body: Callable[[], int]) -> int:
    """Run `body`, turning every exception into a one-line message on stderr and its exit code.

    ARMDEPLOY_DEBUG=1 prints the traceback as well.
    """
    try:
        return body()
    except ArmdeployError as error:
        return _report(program, error.one_line(), error.exit_code)
    except KeyboardInterrupt:
        return _report(program, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # the last resort: a fault of ours, said so
        text = " ".join(f"internal error: {type(error).__name__}: {error}".split())
        return _report(program, f"{text}; set ARMDEPLOY_DEBUG=1 for the traceback", ArmdeployError.exit_code)


def _report(program: str, message: str, code: int) -> int:
    if os.environ.get("ARMDEPLOY_DEBUG"):
        traceback.print_exc()
    print(f"{program}: error: {message}", file=sys.stderr)
    return code

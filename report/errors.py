# SPDX-License-Identifier: Apache-2.0
"""The errors that reach a user, each with its process exit code.

One line each: what went wrong, where, why, and what to do next. `EXIT_CODES` is the table that
``--help`` and the README print.
"""

from __future__ import annotations


class ArmdeployError(Exception):
    """Base of every error that is reported to the user in one line.

    Args:
        what: what went wrong, naming the offending value.
        where: the file, option or stage concerned.
        why: the cause, when it is known.
        hint: what the user can do next.
    """

    exit_code = 1
    meaning = "internal error"
    log = ""
    """Console text of a run that failed."""

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        self.what, self.where, self.why, self.hint = what, where, why, hint
        super().__init__(self.one_line())

    def one_line(self) -> str:
        """The message on one line: ``where: what: why; hint``."""
        where, what, why, hint = (" ".join(p.split()) for p in (self.where, self.what, self.why, self.hint))
        text = f"{where}: {what}" if where else what
        if why:
            text += f": {why}"
        return f"{text}; {hint}" if hint else text


class UsageError(ArmdeployError):
    """The command line or an input file's form is wrong."""

    exit_code = 2
    meaning = "usage"


class EnvironmentError_(ArmdeployError):
    """Something this machine needs is missing: a tool, a package, a licence."""

    exit_code = 3
    meaning = "environment: a tool is missing or a licence is not accepted"


class CompileError(ArmdeployError):
    """The model cannot be compiled for the target, or does not fit it."""

    exit_code = 4
    meaning = "cannot compile or does not fit"


class RunFailed(ArmdeployError):
    """The run ended without a proof of success."""

    exit_code = 5
    meaning = "ran, but failed or gave wrong output"


class OutputMismatch(RunFailed):
    """The run ended, but an output differs from its reference."""


class BudgetError(ArmdeployError):
    """A budget or a regression gate was exceeded."""

    exit_code = 6
    meaning = "budget exceeded or regression"


class PlatformTimeout(ArmdeployError):
    """The platform did not finish within the time limit."""

    exit_code = 7
    meaning = "platform time-out"


INTERRUPTED = 130

EXIT_CODES: dict[int, str] = {
    0: "ok",
    ArmdeployError.exit_code: ArmdeployError.meaning,
    **{
        error.exit_code: error.meaning
        for error in (UsageError, EnvironmentError_, CompileError, RunFailed, BudgetError, PlatformTimeout)
    },
    INTERRUPTED: "interrupted",
}

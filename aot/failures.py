# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's exceptions as one line: they wrap each other, and only the innermost says what is wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from report.errors import ArmdeployError, CompileError


@contextlib.contextmanager
def compile_errors(stage: str) -> Iterator[None]:
    """Turn every exception but our own into a `CompileError` of `stage`."""
    try:
        yield
    except ArmdeployError:
        raise
    except Exception as error:
        raise _translated(error, stage) from error


def first_line(error: BaseException) -> str:
    """The first line of `error`'s text that is not blank."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else repr(error)


def _translated(error: Exception, stage: str) -> CompileError:
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    reason = first_line(root)
    if "Missing out variants" in reason:
        return CompileError(
            reason,
            where=stage,
            why="these operators stay on the CPU and no kernel library has them",
            hint="replace them in the model, or register the kernel's out variant",
        )
    return CompileError("ExecuTorch refuses the model", where=stage, why=f"{type(root).__name__}: {reason}")

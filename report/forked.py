# SPDX-License-Identifier: Apache-2.0
"""A function in a child process, for native code that a damaged file can bring down."""

from __future__ import annotations

import faulthandler
import os
import pickle
from collections.abc import Callable
from typing import TypeVar

from report.errors import RunFailed

T = TypeVar("T")


def forked(function: Callable[[], T], what: str) -> T:
    """The result of `function`, computed in a copy of this process; its exceptions are raised here.

    Args:
        what: the program or library that computes, for the message.

    Raises:
        RunFailed: the child ended without a result.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(function, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if not answer or os.waitstatus_to_exitcode(status):
        raise RunFailed(f"{what} ended without a result", why=_ending(os.waitstatus_to_exitcode(status)))
    result, error = pickle.loads(answer)
    if error is not None:
        raise error
    return result


def _answer(function: Callable[[], T], writer: int) -> None:
    """Write (result, None) or (None, exception) and end the process, whatever happens."""
    faulthandler.disable()  # the parent says what happened, on one line
    try:
        try:
            answer = pickle.dumps((function(), None))
        except Exception as error:
            answer = pickle.dumps((None, error))
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    finally:
        os._exit(1)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

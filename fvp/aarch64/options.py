# SPDX-License-Identifier: Apache-2.0
"""How a Cortex-A program is to be run, as plain data."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields

from report.errors import UsageError


@dataclass(frozen=True)
class CpuRun:
    """What a user chooses beside the program; None leaves it to the platform.

    Attributes:
        threads: numbers of threads; the program is run with each in turn.
        warmup: inferences before those that are timed.
        repetitions: inferences that are timed.
        serial: which phone, as ``adb devices`` lists it; None where only one is connected.
        host: the machine to reach, as ssh takes it.
        pinned: keep to the fastest cores, as many as threads, in place of the system's choice.
    """

    threads: tuple[int, ...] = (1,)
    warmup: int | None = None
    repetitions: int | None = None
    serial: str | None = None
    host: str | None = None
    pinned: bool = False

    def require(self, known: Collection[str], where: str) -> None:
        """Raise UsageError for the first option given that is not `known`."""
        for field in fields(self):
            if field.name not in known and getattr(self, field.name) != field.default:
                raise UsageError(f"--{field.name} means nothing here", where=where)


def parse_threads(text: str) -> tuple[int, ...]:
    """Numbers of threads from a comma separated list.

    Raises:
        UsageError: something else.
    """
    try:
        numbers = tuple(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise UsageError(f"no numbers of threads: {text!r}", where="--threads", hint="such as 1 or 1,4")
    return numbers

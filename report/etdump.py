# SPDX-License-Identifier: Apache-2.0
"""An ETDump as frozen data: each execution of a method with its operators.

Format: ``devtools/etdump/etdump_schema_flatcc.fbs`` of the executorch wheel, identifier "ED00". Ticks are the
runtime's own: nanoseconds, unless the runner's clock counts something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from report import flatschema
from report.errors import UsageError

_EXECUTE, _DELEGATE, _OPERATOR = "Method::execute", "DELEGATE_CALL", "OPERATOR_CALL"
_IDENTIFIER = b"ED00"
_MASK = (1 << 64) - 1


class EtdumpError(UsageError):
    """The bytes are no readable ETDump, or record no execution."""


@dataclass(frozen=True)
class Span:
    """A stretch of time in ticks. `instruction` is the number of the program's instruction, -1 for none."""

    name: str
    start: int
    end: int
    instruction: int

    @property
    def ticks(self) -> int:
        """Its length; ticks wrap at 64 bits."""
        return (self.end - self.start) & _MASK

    def after(self, origin: Span) -> int:
        """Ticks from the start of `origin` to its own."""
        return (self.start - origin.start) & _MASK


@dataclass(frozen=True)
class Call:
    """One instruction: an operator, or a delegate with what happened inside it (`parts`, in order)."""

    span: Span
    delegate: bool
    parts: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Execution:
    """One ``Method::execute``."""

    span: Span
    calls: tuple[Call, ...]


def read(data: bytes) -> tuple[Execution, ...]:
    """Every execution in an ETDump, in order.

    Raises:
        EtdumpError: not an ETDump, damaged, or without an execution.
        EnvironmentError_: executorch is not installed.
    """
    sized = data[8:12] == _IDENTIFIER  # the runtime writes the size of the whole first
    if not sized and data[4:8] != _IDENTIFIER:
        raise EtdumpError("no ETDump", why=f"the first bytes are {data[:12]!r}")
    schema = flatschema.classes(flatschema.ETDUMP)
    try:
        dump = schema.ETDumpT.InitFromPackedBuf(data, 4 if sized else 0)
        blocks = [list(map(_span, block.events or [])) for block in dump.runData or []]
    except Exception as error:  # the generated reader raises whatever damaged offsets lead to
        raise EtdumpError("damaged ETDump", why=f"{type(error).__name__}: {error}") from error
    found = tuple(_execution(events) for events in blocks if any(e.name == _EXECUTE for e, _ in events))
    if not found:
        raise EtdumpError("the ETDump records no execution")
    return found


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _span(event: Any) -> tuple[Span, bool]:
    """The event, and whether it happened inside a delegate: those carry the delegate's own name."""
    profile = event.profileEvent
    if profile is None:
        return Span("", 0, 0, -1), False
    inner = _text(profile.delegateDebugIdStr)
    name = inner if inner is not None else _text(profile.name) or ""
    return Span(name, profile.startTime, profile.endTime, profile.instructionId), inner is not None


def _execution(events: Sequence[tuple[Span, bool]]) -> Execution:
    """Events are logged when they end: a delegate's parts come before its call."""
    calls: list[Call] = []
    parts: list[Span] = []
    for span, inside in events:
        if inside:
            parts.append(span)
        elif span.name in (_DELEGATE, _OPERATOR):
            calls.append(Call(span, span.name == _DELEGATE, tuple(parts)))
            parts.clear()
        elif span.name == _EXECUTE:
            return Execution(span, tuple(calls))
    raise EtdumpError("an execution has no end")

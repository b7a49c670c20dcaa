# SPDX-License-Identifier: Apache-2.0
"""Vela's debug database (``--enable-debug-db``): which operator of its input became which command.

The file is XML with one table of comma-separated values in each ``table`` element. Used here: ``queue``
(offset of an operation command to optimised operator), ``optimised`` (to source operator), ``source`` (its
kind and place in the input file) and ``perf`` (the name of its result, Vela's estimate).
"""

from __future__ import annotations

import bisect
import csv
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from report.errors import UsageError


@dataclass(frozen=True)
class QueuedOperation:
    """What Vela says of one operation command.

    Attributes:
        operator: the operation as Vela schedules it (Conv2D, MemoryCopy …).
        source: kind of the operator in Vela's input that it is made for, `source_index` its number there.
        cycles: Vela's estimate for the operation.
    """

    operator: str
    source: str
    source_index: int | None
    cycles: int


def read(path: Path) -> dict[int, QueuedOperation]:
    """Operations by byte offset of their last operation command, counted from the first register command.

    Vela may split an operation into several commands; those before the last are not in the database.

    Raises:
        UsageError: unreadable, or not such a database.
    """
    try:
        root = ElementTree.parse(path).getroot()
        tables = {table.attrib["name"]: _rows(table.text or "") for table in root.iter("table")}
        return _queue(tables)
    except (OSError, ElementTree.ParseError, KeyError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError("damaged Vela debug database", where=str(path), why=why) from error


def at(queue: Mapping[int, QueuedOperation], offset: int) -> QueuedOperation | None:
    """What the operation command at `offset` was made for: the first entry that is not before it."""
    ends = sorted(queue)
    position = bisect.bisect_left(ends, offset)
    return queue[ends[position]] if position < len(ends) else None


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.strip().splitlines()))


def _queue(tables: Mapping[str, list[dict[str, str]]]) -> dict[int, QueuedOperation]:
    sources = {row["id"]: row for row in tables["source"]}
    source_of = {row["id"]: sources.get(row["source_id"]) for row in tables["optimised"]}
    figures = {row["id"]: row for row in tables["perf"]}
    queued = {}
    for row in tables["queue"]:
        figure, source = figures.get(row["scheduled_id"]), source_of.get(row["optimised_id"])
        if figure is not None:
            queued[int(row["offset"])] = QueuedOperation(
                operator=figure["operator"],
                source=source["operator"] if source else "",
                source_index=int(source["ext_key"]) if source else None,
                cycles=int(figure["op_cycles"]),
            )
    return queued

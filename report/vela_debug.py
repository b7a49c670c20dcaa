# SPDX-License-Identifier: Apache-2.0
"""Vela's debug database (``--enable-debug-db``): which operator of its input became which command.

The file is XML with one table of comma-separated values in each ``table`` element. Used here: ``queue``
(offset of an operation command to optimised operator), ``optimised`` (to source operator), ``source`` (its
kind and place in the input file), ``perf`` (the name of its result, Vela's estimate), ``perf_debug`` (the
shape of its result) and ``tensors`` (where that is).
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
class Placement:
    """Where a whole tensor is when it has been computed.

    Attributes:
        address: byte offset in the region that the operation writes to.
        size: bytes, gaps included.
        layout: NHWC or NHCWB16.
        shape: (n, h, w, c) as Vela sees it.
    """

    address: int
    size: int
    layout: str
    shape: tuple[int, int, int, int]


@dataclass(frozen=True)
class QueuedOperation:
    """What Vela says of one operation command.

    Attributes:
        operator: the operation as Vela schedules it (Conv2D, MemoryCopy …).
        source: kind of the operator in Vela's input that it is made for, `source_index` its number there.
        cycles: Vela's estimate for the operation.
        result: name of the tensor that it computes; in a TOSA graph, that of a tensor there.
        placement: where that is, None where Vela does not say.
    """

    operator: str
    source: str
    source_index: int | None
    cycles: int
    result: str = ""
    placement: Placement | None = None


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
    places = {row["name"]: row for row in tables.get("tensors", [])}
    shapes = {row["id"]: row for row in tables.get("perf_debug", [])}
    queued = {}
    for row in tables["queue"]:
        figure, source = figures.get(row["scheduled_id"]), source_of.get(row["optimised_id"])
        if figure is not None:
            queued[int(row["offset"])] = QueuedOperation(
                operator=figure["operator"],
                source=source["operator"] if source else "",
                source_index=int(source["ext_key"]) if source else None,
                cycles=int(figure["op_cycles"]),
                result=figure["name"],
                placement=_placement(places.get(figure["name"]), shapes.get(row["scheduled_id"])),
            )
    return queued


def _placement(tensor: Mapping[str, str] | None, shape: Mapping[str, str] | None) -> Placement | None:
    if tensor is None or shape is None or tensor["format"] not in ("NHWC", "NHCWB16"):
        return None
    n, h, w, c = (int(shape[f"ofm_shape_{axis}"]) for axis in "nhwc")
    return Placement(int(tensor["start_address"], 0), int(tensor["size"], 0), tensor["format"], (n, h, w, c))

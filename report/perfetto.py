# SPDX-License-Identifier: Apache-2.0
"""Chrome trace events, which Perfetto reads: a process for each thing that ran, a thread for each lane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def document(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The file that holds `events`."""
    return {"traceEvents": list(events), "displayTimeUnit": "ns"}


def names(process: int, name: str, lanes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Events that name a process and its lanes, thread n being lane n."""
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    for thread, lane in enumerate(lanes):
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": lane}}


def span(process: int, thread: int, name: str, start: float, length: float) -> dict[str, Any]:
    """Something that took a while; `start` and `length` are microseconds."""
    return {"ph": "X", "name": name, "pid": process, "tid": thread, "ts": start, "dur": length}

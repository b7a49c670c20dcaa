# SPDX-License-Identifier: Apache-2.0
"""Arm's own timing of a run: the file that an FVP writes for ``ethosu.extra_args="--pmu-trace FILE"``.

JSON, compressed with gzip or not, in Chrome's trace format. Its events on the track "qread" tell at which
cycle (`ts`) the NPU had read how many words of the command stream (`args.qread`). An operation lasts from
when its command has been read until the next operation's has, the last one until the end of the trace.
"""

from __future__ import annotations

import gzip
import json
import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report.errors import UsageError

_GZIP = b"\x1f\x8b"
_TRACK = "qread"
_WORD = 4
_SIMULATED = ("mac_cycles", "output_cycles", "decoder_cycles", "bound", "port")


@dataclass(frozen=True)
class Trace:
    """When the stream had been read up to a byte: both ascending, offsets from the first command on."""

    offsets: tuple[int, ...]
    cycles: tuple[float, ...]

    def after(self, offset: int) -> float:
        """Cycle at which the command at this byte had been read; the end of the trace if never."""
        index = bisect_right(self.offsets, offset)
        return self.cycles[min(index, len(self.cycles) - 1)]


def read(path: Path) -> Trace:
    """Read a trace.

    Raises:
        UsageError: not such a file, or one without the track.
    """
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if data.startswith(_GZIP) else data
        events = json.loads(text)["traceEvents"]
        points = sorted((float(e["ts"]), int(e["args"][_TRACK])) for e in events if e.get("tid") == _TRACK)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            "cannot read the trace",
            where=str(path),
            why=f"{type(error).__name__}: {error}",
            hint='give the file of an FVP\'s ethosu.extra_args="--pmu-trace FILE"',
        ) from error
    if not points:
        raise UsageError("no events of the command queue", where=str(path), why=f'no track "{_TRACK}"')
    return _ascending(points)


def _ascending(points: Sequence[tuple[float, int]]) -> Trace:
    """Up to where the queue begins again: a trace may hold more than one inference."""
    offsets: list[int] = []
    cycles: list[float] = []
    for cycle, words in points:
        if offsets and words * _WORD < offsets[-1]:
            break
        offsets.append(words * _WORD)
        cycles.append(cycle)
    return Trace(tuple(offsets), tuple(cycles))


def apply(document: Mapping[str, Any], trace: Trace, path: Path) -> dict[str, Any]:
    """The profile document with the trace's times in place of the model's.

    What only the model knows of an operation becomes None; its cycles stay as `simulated_cycles`.

    Raises:
        UsageError: not one network, or the trace is of another stream.
    """
    if len(document["networks"]) != 1:
        raise UsageError(
            "a trace is of one network", where=str(path), why=f"{len(document['networks'])} here"
        )
    (network,) = document["networks"]
    first = network["stream"]["first_command"]
    starts = [trace.after(operation["offset"] - first) for operation in network["operations"]]
    last = network["operations"][-1]["offset"] - first if starts else 0
    if not starts or trace.offsets[-1] <= last:
        raise UsageError(
            "the trace is of another network",
            where=str(path),
            why=f"it ends at byte {trace.offsets[-1]} of the stream, the last operation is at byte {last}",
        )
    ends = [*starts[1:], trace.cycles[-1]]
    total = ends[-1] - trace.cycles[0]
    operations = [
        _measured(operation, start - trace.cycles[0], end - trace.cycles[0], total)
        for operation, start, end in zip(network["operations"], starts, ends, strict=True)
    ]
    measured = {**network, "cycles": round(total), "operations": operations, "roofline": None}
    measured |= dict.fromkeys(("mac_cycles", "output_cycles", "decoder_cycles"))
    measured["simulated_cycles"] = network["cycles"]
    measured["utilisation"] = _ratio(network["utilisation"] * network["cycles"], total)
    source = {"nature": "measured", "accuracy": f"Arm's FVP, trace {path}", "timing_adapter": "of the run"}
    return {**document, **source, "networks": [measured]}


def _measured(operation: Mapping[str, Any], start: float, end: float, total: float) -> dict[str, Any]:
    cycles = end - start
    return {
        **operation,
        **dict.fromkeys(_SIMULATED),
        "simulated_cycles": operation["cycles"],
        "cycles": round(cycles),
        "start": round(start),
        "end": round(end),
        "share": _ratio(cycles, total),
        "utilisation": _ratio(operation["utilisation"] * operation["cycles"], cycles),
    }


def _ratio(value: float, whole: float) -> float:
    return value / whole if whole else 0.0

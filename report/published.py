# SPDX-License-Identifier: Apache-2.0
"""Figures that others have published of Cortex-A phones, as data with their source.

Nature ``published``. They are of another model on another device: shown beside ours, never subtracted from
them, divided by them or put into one table with them. A figure that the source does not state is null; none
is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from report.tables import table

PATH = Path(__file__).with_name("published.json")


def read() -> list[dict[str, Any]]:
    """Every publication: title, source, date, device, model, runtime, latency, shares, remarks."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def to_text(publications: Sequence[Mapping[str, Any]]) -> str:
    """Each with its source, its latencies and its shares."""
    return "\n\n".join(map(_publication, publications))


def _publication(told: Mapping[str, Any]) -> str:
    lines = [
        f"published, not measured here: {told['title']} ({told['date'] or told['date_note']})",
        told["source"],
        f"{told['model']}; {told['device']}; {told['runtime']}",
    ]
    latency = [
        {
            "type": row["dtype"],
            "cores": row["threads"],
            "power": row["power"],
            "without SME2 ms": row["off_ms"],
            "with SME2 ms": row["on_ms"],
            "speed-up": row["speed_up"],
        }
        for row in told["latency"]
    ]
    shares = [
        {
            "type": row["dtype"],
            "SME2": "on" if row["sme2"] else "off",
            "share of": row["categories"],
            "%": row["percent"],
        }
        for row in told["shares"]
    ]
    return "\n".join([*lines, table(latency), "", table(shares), *told["remarks"]])

# SPDX-License-Identifier: Apache-2.0
"""A verification for the terminal: a pure function of the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from report.tables import table


def to_text(networks: Sequence[Mapping[str, Any]]) -> str:
    """What was compared with what, the first differences, the layers if asked for, and the verdict."""
    lines = [line for network in networks for line in _network(network)]
    exact = all(network["result"] == "exact" for network in networks)
    return "\n".join([*lines, f"verify: {'exact' if exact else 'different'}"])


def _network(network: Mapping[str, Any]) -> Iterator[str]:
    size = f"{network['cases']} sets of inputs, {network['elements']:,} output elements"
    yield f"{network['name']}: {network['target']} against {network['oracle']}: {size}"
    yield from (mismatch["text"] for mismatch in network["mismatches"])
    if network["layers"]:
        yield table([_row(layer) for layer in network["layers"]])
        first = next((layer for layer in network["layers"] if layer["difference"]), None)
        if first is not None:
            yield f"results depart at {first['tensor']} ({first['source']}), operation {first['operation']}"


def _row(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operation": layer["operation"],
        "offset": f"{layer['offset']:#x}",
        "made for": layer["source"],
        "tensor": layer["tensor"],
        "result": layer["text"],
    }

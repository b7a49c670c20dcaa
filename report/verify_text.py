# SPDX-License-Identifier: Apache-2.0
"""A verification for the terminal: a pure function of the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from report.tables import table


def to_text(files: Sequence[Mapping[str, Any]]) -> str:
    """What was compared with what, the first differences, the layers if asked for, and the verdict."""
    lines = [line for file in files for line in _file(file)]
    worst = next(r for r in ("different", "close", "exact") if any(f["result"] == r for f in files))
    return "\n".join([*lines, f"verify: {worst}"])


def _file(file: Mapping[str, Any]) -> Iterator[str]:
    for network in file["networks"]:
        yield from _network(network)
    yield from (output["text"] for output in file["bundled"])
    if file["quantization"]:
        yield from _quantization(file["quantization"])
    elif any(network["layers"] for network in file["networks"]):
        yield "float against quantised: not measured; give the model, or compile with --quantization_loss"


def _network(network: Mapping[str, Any]) -> Iterator[str]:
    size = f"{network['cases']} sets of inputs, {network['elements']:,} output elements"
    yield f"{network['name']}: {network['target']} against {network['oracle']}: {size}"
    yield from (mismatch["text"] for mismatch in network["mismatches"])
    if network["layers"]:
        yield table([_row(layer) for layer in network["layers"]])
        yield _device_verdict(network["layers"])


def _device_verdict(layers: Sequence[Mapping[str, Any]]) -> str:
    first = next((layer for layer in layers if layer["difference"]), None)
    if first is not None:
        place = f", {first['module_path'] or first['node']}" if first["node"] else ""
        where = f"{first['tensor']} ({first['source']}{place}), operation {first['operation']}"
        return f"device: results depart at {where}"
    compared = sum(not layer["reason"] for layer in layers)
    return f"device: equal in all {compared} tensors that are in memory as a whole, of {len(layers)}"


def _row(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operation": layer["operation"],
        "offset": f"{layer['offset']:#x}",
        "made for": layer["source"],
        "tensor": layer["tensor"],
        "module": layer["module_path"],
        "result": layer["text"],
    }


def _quantization(layers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The losses in order, and where the least is left of the float model."""
    yield "float against quantised, on the example input:"
    yield table([_loss(layer) for layer in layers])
    known = [layer for layer in layers if layer["sqnr_db"] is not None]
    if known:
        worst = min(known, key=lambda layer: layer["sqnr_db"])
        place = ", ".join(filter(None, (worst["module_path"], worst["line"])))
        yield f"quantisation: least at {worst['node']} ({place}), {worst['sqnr_db']:.1f} dB"


def _loss(layer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "node": layer["node"],
        "operator": layer["operator"],
        "module": layer["module_path"],
        "line": layer["line"],
        "SQNR dB": _number(layer["sqnr_db"], ".1f"),
        "cosine": _number(layer["cosine"], ".6f"),
        "largest error": _number(layer["largest_error"], ".4g"),
        "device": layer["device"],
    }


def _number(value: float | None, form: str) -> str | None:
    return None if value is None else format(value, form)

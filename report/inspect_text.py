# SPDX-License-Identifier: Apache-2.0
"""An inspection for the terminal, and as node data for Model Explorer: pure functions of the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from report.tables import table

_MAX_INSTRUCTIONS = 40


def to_text(document: Mapping[str, Any]) -> str:
    """Program or model, then every network with its regions, operations and (if asked for) commands."""
    lines = [f"{document['file']}  {document['bytes']:,} bytes  sha256 {document['sha256'][:16]}"]
    if document["program"] is not None:
        lines += _program(document["program"])
    if document["model"] is not None:
        lines += _model(document["model"])
    for network in document["networks"]:
        lines += ["", *_network(network)]
    return "\n".join(lines)


def _program(program: Mapping[str, Any]) -> Iterator[str]:
    for method in program["methods"]:
        planned = ", ".join(f"id {key}: {size:,}" for key, size in method["planned_bytes"].items())
        yield f"method {method['name']}: {_tensors(method['inputs'])} -> {_tensors(method['outputs'])}"
        yield f"  planned memory in bytes {planned or 'none'}; constants {method['constant_bytes']:,} bytes"
        yield f"  {len(method['instructions'])} instructions, {len(method['delegates'])} delegates"
        shown = method["instructions"][:_MAX_INSTRUCTIONS]
        yield table([{k: i[k] for k in ("id", "kind", "what", "values")} for i in shown])
        if len(shown) < len(method["instructions"]):
            yield f"  … {len(method['instructions']) - len(shown)} more; --json has all"


def _model(model: Mapping[str, Any]) -> Iterator[str]:
    kinds = ", ".join(f"{count} {name}" for name, count in model["by_kind"].items())
    yield f"TensorFlow Lite: {_tensors(model['inputs'])} -> {_tensors(model['outputs'])}"
    yield f"  {len(model['operators'])} operators: {kinds}; constants {model['constant_bytes']:,} bytes"


def _tensors(tensors: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{t['dtype']}{t['shape']}" for t in tensors) or "nothing"


def _network(network: Mapping[str, Any]) -> Iterator[str]:
    stream = network["stream"]
    kinds = ", ".join(f"{count} {name}" for name, count in stream["by_kind"].items())
    yield f"delegate {network['id']}: {network['target']}, CONFIG {network['config_word']}"
    yield f"  {stream['bytes']:,} bytes of commands, {stream['commands']} commands: {kinds or 'no operation'}"
    yield table(network["regions"])
    yield ""
    yield table([_row(operation) for operation in network["operations"]])
    if "commands" in network:
        yield ""
        yield from (command["text"] for command in network["commands"])


def _row(operation: Mapping[str, Any]) -> dict[str, Any]:
    """One line an operation: the columns that tell most, others are in the JSON."""
    return {
        "id": operation["id"],
        "offset": f"{operation['offset']:#x}",
        "operation": _name(operation),
        "ifm": _shape(operation.get("ifm")),
        "ofm": _shape(operation.get("ofm")),
        "kernel": _kernel(operation.get("kernel")),
        "block": "x".join(map(str, operation.get("block", []))),
        "weights": _weights(operation.get("weights")),
        "MACs": operation["macs"],
        "read": sum(operation["bytes_read"].values()),
        "written": sum(operation["bytes_written"].values()),
        **_origin(operation),
    }


def _name(operation: Mapping[str, Any]) -> str:
    mode = operation["mode"]
    return f"{operation['name']} {mode}" if mode and mode != "NONE" else str(operation["name"])


def _origin(operation: Mapping[str, Any]) -> dict[str, str]:
    """Columns for where the operation comes from, when the compile report tells."""
    if "tosa_operator" not in operation:
        return {}
    place = " ".join(filter(None, (operation["module_path"], operation["py_line"])))
    return {"TOSA": operation["tosa_operator"] or "", "model": place}


def _shape(feature_map: Mapping[str, Any] | None) -> str:
    if feature_map is None:
        return ""
    chained = " chained" if feature_map["storage"] == "CHAINED" else ""
    return f"{'x'.join(map(str, feature_map['shape']))} {feature_map['dtype']}{chained}"


def _kernel(kernel: Mapping[str, Any] | None) -> str:
    if kernel is None:
        return ""
    text = "x".join(map(str, kernel["taps"]))
    for name, key in (("s", "stride"), ("d", "dilation")):
        if kernel[key] != [1, 1]:
            text += f" {name}{'x'.join(map(str, kernel[key]))}"
    return text


def _weights(weights: Mapping[str, Any] | None) -> str:
    if weights is None:
        return ""
    sparse = " 2:4" if weights["sparse"] else ""
    ratio = f", {weights['ratio']:.2f}:1" if weights["ratio"] else ""
    return f"{weights['bytes']:,} {weights['format']}{sparse}{ratio}"


def node_data(document: Mapping[str, Any], figure: str = "macs") -> dict[str, Any]:
    """Model Explorer's node data: one value for each TOSA tensor, summed over the operations that make it.

    Args:
        figure: key of an operation whose values are shown (``macs`` …).
    """
    graphs = {}
    for network in document["networks"]:
        values: dict[str, float] = {}
        for operation in network["operations"]:
            if operation.get("tosa") and operation.get(figure) is not None:
                values[operation["tosa"]] = values.get(operation["tosa"], 0) + operation[figure]
        graphs[f"delegate_{network['id']}"] = {
            "results": {name: {"value": value} for name, value in values.items()},
            "gradient": [{"stop": 0, "bgColor": "white"}, {"stop": 1, "bgColor": "orange"}],
        }
    return graphs

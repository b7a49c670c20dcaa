# SPDX-License-Identifier: Apache-2.0
"""A profile for the terminal and for Perfetto: pure functions of the document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from report import perfetto
from report.tables import table

_UNITS = {"mac": ("the MAC array", "mac_cycles"), "output": ("the output stage", "output_cycles")}
"""Bounds that are units of the NPU, in words, and what counts their work."""

_STREAMS = {"ifm": "input", "weights": "weights", "scales": "scales", "store": "result"}
"""Bounds that are streams through a port, in words."""

_LARGEST = 10
"""Operations that the table of the roofline has."""

_LANES = {"mac_cycles": "MAC array", "output_cycles": "output stage", "decoder_cycles": "weight decoder"}


def to_text(document: Mapping[str, Any]) -> str:
    """Totals, one line that names the bottleneck, and a table of the operations, for every network."""
    lines = [
        f"{document['file']}: {document['target']}, {document['system_config']}, {document['memory_mode']}"
    ]
    lines.append(f"memory timing {document['timing_adapter']}; {document['nature']}, {document['accuracy']}")
    for network in document["networks"]:
        lines += ["", *_network(network, document["clock_hz"])]
    return "\n".join(lines)


def _network(network: Mapping[str, Any], clock: float) -> Iterator[str]:
    time = f"{1000 * network['cycles'] / clock:.3f} ms at {clock / 1e6:g} MHz"
    work = f"{network['macs']:,} MACs, {network['utilisation']:.1%} of the MAC array"
    yield f"delegate {network['id']}: {network['cycles']:,} cycles, {time}, {work}"
    yield table(network["ports"])
    yield bottleneck(network)
    yield ""
    yield table([_row(operation) for operation in network["operations"]])
    if network["roofline"]:
        yield ""
        yield from _roofline(network)


def _roofline(network: Mapping[str, Any]) -> Iterator[str]:
    """The largest operations below their roofs."""
    roofline, operations = network["roofline"], network["operations"]
    ports = ", ".join(f"{name} {roof['total']:.4g} bytes" for name, roof in roofline["ports"].items())
    yield f"roofline: {roofline['peak']:g} MACs a cycle at most; {ports} a cycle, latency not counted"
    points = sorted(roofline["points"], key=lambda p: -operations[p["number"]]["cycles"])[:_LARGEST]
    yield table([_point(point, operations[point["number"]]) for point in points])


def _point(point: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[str, Any]:
    intensity = ", ".join(f"{port} {value:.3g}" for port, value in point["intensity"].items())
    return {
        "id": operation["id"],
        "operation": operation["name"],
        "MACs a byte": intensity,
        "MACs a cycle": f"{point['reached']:.1f}",
        "roof": f"{point['roof']:.1f}",
        "of it": f"{point['reached'] / point['roof']:.0%}",
        "roof is": "MAC array" if point["limit"] == "mac" else f"{point['limit']} bandwidth",
    }


def bottleneck(network: Mapping[str, Any]) -> str:
    """One sentence: what takes the largest share of the cycles, how busy it is then, and where most of it is.

    Streams through the same port count together. The busy share is that of the counters, over the operations
    that are bounded so.
    """
    groups: dict[tuple[str | None, str], list[Mapping[str, Any]]] = {}
    for operation in network["operations"]:
        groups.setdefault(_group(operation), []).append(operation)
    if not network["cycles"] or not groups:
        return "bottleneck: none, the network computes nothing"
    key = max(groups, key=lambda key: _cycles(groups[key]))
    largest = max(groups[key], key=lambda operation: operation["cycles"])
    if key[0] is None:
        return f"largest: operation {_where(largest)}; a trace does not tell what bounds it"
    share = f"{_cycles(groups[key]) / network['cycles']:.0%}"
    said = _said(key, groups[key], share, network)
    return f"bottleneck: {said}, most in operation {_where(largest)}"


def _group(operation: Mapping[str, Any]) -> tuple[str | None, str]:
    """(kind of bound, port)."""
    bound = operation["bound"]
    return ("port", operation["port"]) if bound in _STREAMS else (bound, "")


def _cycles(operations: Iterable[Mapping[str, Any]]) -> int:
    return sum(operation["cycles"] for operation in operations)


def _said(
    key: tuple[str | None, str],
    operations: Sequence[Mapping[str, Any]],
    share: str,
    network: Mapping[str, Any],
) -> str:
    kind, port = key
    if kind in _UNITS:
        words, counter = _UNITS[kind]
        return f"{words} bounds {share} of the cycles, active in {_active(operations, counter):.0%} of those"
    if kind == "port":
        used = _used(operations, port, network["roofline"]["ports"][port])
        return (
            f"traffic through {port} bounds {share} of the cycles, {used:.0%} of its bandwidth used in those"
        )
    if kind == "dma":
        return f"DMA that other work waits for bounds {share} of the cycles"
    busiest = max(_active(operations, counter) for _, counter in _UNITS.values())
    waits = "latency, dependencies and start-up bound"
    return f"{waits} {share} of the cycles, no unit active in more than {busiest:.0%} of those"


def _active(operations: Sequence[Mapping[str, Any]], counter: str) -> float:
    """Share of the operations' cycles; what was done beside the operation before is not among those."""
    return min(1.0, sum(operation[counter] for operation in operations) / _cycles(operations))


def _used(operations: Sequence[Mapping[str, Any]], port: str, roof: Mapping[str, float]) -> float:
    """Share of the port's bandwidth, both directions together or the busier one."""
    moved = [operation["traffic"].get(port, {}) for operation in operations]
    read, written = (sum(traffic.get(f"bytes_{way}", 0) for traffic in moved) for way in ("read", "written"))
    least = max((read + written) / roof["total"], max(read, written) / roof["each"])
    return min(1.0, least / _cycles(operations))


def _where(operation: Mapping[str, Any]) -> str:
    """An operation for the sentence: what, where in the model, which of its streams, how much."""
    parts = operation["name"], place(operation), _STREAMS.get(operation["bound"])
    return f"{operation['id']} ({', '.join(filter(None, parts))}: {operation['share']:.0%})"


def place(operation: Mapping[str, Any]) -> str:
    """Module and line of the model, as far as they are known."""
    return " ".join(filter(None, (operation.get("module_path"), operation.get("py_line"))))


def _row(operation: Mapping[str, Any]) -> dict[str, Any]:
    traffic = operation["traffic"].values()
    return {
        "id": operation["id"],
        "operation": f"{operation['name']} {operation['mode']}".strip(),
        "cycles": operation["cycles"],
        **({"simulated": operation["simulated_cycles"]} if "simulated_cycles" in operation else {}),
        "share": f"{operation['share']:.1%}",
        "bound": f"{operation['bound'] or ''} {operation.get('port') or ''}".strip(),
        "MACs": operation["macs"],
        "MAC use": f"{operation['utilisation']:.1%}",
        "bytes read": sum(t["bytes_read"] for t in traffic),
        "written": sum(t["bytes_written"] for t in traffic),
        "TOSA": operation.get("tosa_operator") or "",
        "model": place(operation),
    }


def to_perfetto(document: Mapping[str, Any]) -> dict[str, Any]:
    """Chrome trace events, which Perfetto reads: a process for each network, lanes for what is busy.

    Times are microseconds at the document's clock. In the lanes of the units, an operation's busy cycles
    stand at the start of its span.
    """
    scale = 1e6 / document["clock_hz"]
    events: list[dict[str, Any]] = []
    for network in document["networks"]:
        events += perfetto.names(network["id"], f"delegate {network['id']}", _THREADS)
        for operation in network["operations"]:
            events += _spans(network["id"], operation, scale)
    return perfetto.document(events)


_DETAILS = ("bound", "port", "macs", "tosa_operator", "module_path", "py_line")
_THREADS = ("operations", "DMA", *_LANES.values())


def _spans(process: int, operation: Mapping[str, Any], scale: float) -> Iterator[dict[str, Any]]:
    start, end = operation["start"], operation["end"]
    dma = operation["name"] == "DMA_START"
    details = {key: operation.get(key) for key in _DETAILS}
    yield _event(process, int(dma), operation, start, end - start, scale) | {"args": details}
    for thread, lane in enumerate(_LANES, start=2):
        if operation[lane]:
            yield _event(process, thread, operation, start, min(operation[lane], end - start), scale)


def _event(
    process: int, thread: int, operation: Mapping[str, Any], start: int, cycles: int, scale: float
) -> dict[str, Any]:
    name = f"{operation['id']} {operation['name']}"
    return perfetto.span(process, thread, name, start * scale, cycles * scale)

# SPDX-License-Identifier: Apache-2.0
"""A profile for the terminal and for Perfetto: pure functions of the document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from report import perfetto
from report.tables import table

_LIMITS = {
    "mac": "the MAC array",
    "weights": "fetching and decoding weights",
    "ifm": "reading the input",
    "output": "the output stage",
    "store": "writing the result",
    "scales": "fetching biases and scales",
    "dma": "DMA",
    "latency": "waiting: latency, dependencies, start-up",
}
"""What an operation's `bound` means, in words."""

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
    """One sentence: what takes the largest share of the cycles, and which operation most of that."""
    by_bound: Counter[str | None] = Counter()
    for operation in network["operations"]:
        by_bound[operation["bound"]] += operation["cycles"]
    if not network["cycles"] or not by_bound:
        return "bottleneck: none, the network computes nothing"
    bound, cycles = by_bound.most_common(1)[0]
    largest = max((o for o in network["operations"] if o["bound"] == bound), key=lambda o: o["cycles"])
    place = _place(largest)
    where = f"{largest['id']} ({largest['name']}{f', {place}' if place else ''}: {largest['share']:.0%})"
    if bound is None:
        return f"largest: operation {where}; a trace does not tell what bounds it"
    what = f"{_LIMITS[bound]} bounds {cycles / network['cycles']:.0%} of the cycles"
    return f"bottleneck: {what}, most in operation {where}"


def _place(operation: Mapping[str, Any]) -> str:
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
        "bound": operation["bound"],
        "MACs": operation["macs"],
        "MAC use": f"{operation['utilisation']:.1%}",
        "bytes read": sum(t["bytes_read"] for t in traffic),
        "written": sum(t["bytes_written"] for t in traffic),
        "TOSA": operation.get("tosa_operator") or "",
        "model": _place(operation),
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


_THREADS = ("operations", "DMA", *_LANES.values())


def _spans(process: int, operation: Mapping[str, Any], scale: float) -> Iterator[dict[str, Any]]:
    start, end = operation["start"], operation["end"]
    dma = operation["name"] == "DMA_START"
    details = {
        key: operation.get(key) for key in ("bound", "macs", "tosa_operator", "module_path", "py_line")
    }
    yield _event(process, int(dma), operation, start, end - start, scale) | {"args": details}
    for thread, lane in enumerate(_LANES, start=2):
        if operation[lane]:
            yield _event(process, thread, operation, start, min(operation[lane], end - start), scale)


def _event(
    process: int, thread: int, operation: Mapping[str, Any], start: int, cycles: int, scale: float
) -> dict[str, Any]:
    name = f"{operation['id']} {operation['name']}"
    return perfetto.span(process, thread, name, start * scale, cycles * scale)

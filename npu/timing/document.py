# SPDX-License-Identifier: Apache-2.0
"""The timing of one network as plain, JSON-ready data."""

from __future__ import annotations

import dataclasses
from typing import Any

from npu.timing.estimate import OpTiming, PortTraffic, Timing
from npu.timing.roofline import roofline


def document(found: Timing) -> dict[str, Any]:
    """Totals, traffic by port, roofline, and every operation."""
    return {
        "cycles": found.total,
        "macs": found.macs,
        "utilisation": found.macs / (found.total * found.config.macs) if found.total else 0.0,
        "mac_cycles": found.mac_cycles,
        "decoder_cycles": found.decoder_cycles,
        "output_cycles": found.output_cycles,
        "ports": [{"port": name, **_traffic(port)} for name, port in found.traffic.items()],
        "roofline": dataclasses.asdict(roofline(found)),
        "operations": [_operation(number, op, found) for number, op in enumerate(found.ops)],
    }


def _operation(number: int, op: OpTiming, found: Timing) -> dict[str, Any]:
    return {
        "id": number,
        "offset": op.offset,
        "name": op.name.removeprefix("OP_"),
        "mode": op.mode if op.mode != "NONE" else "",
        "cycles": op.cycles,
        "share": op.cycles / found.total if found.total else 0.0,
        "start": op.start,
        "end": op.end,
        "mac_cycles": op.mac_cycles,
        "output_cycles": op.output_cycles,
        "decoder_cycles": op.decoder_cycles,
        "macs": op.macs,
        "utilisation": op.utilisation(found.config),
        "bound": op.bound,
        "port": op.port,
        "traffic": {name: _traffic(port) for name, port in op.traffic.items()},
    }


def _traffic(port: PortTraffic) -> dict[str, int]:
    return {
        "beats_read": port.read,
        "beats_written": port.written,
        "bytes_read": port.bytes_read,
        "bytes_written": port.bytes_written,
    }

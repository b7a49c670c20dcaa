# SPDX-License-Identifier: Apache-2.0
"""Roofline: the MACs a cycle that array and bandwidth of the ports allow an operation, and what it reached.

The bandwidth is that of the timing adapter and the port's width, without latency: an operation that stays far
below its roof waits for something else, which `OpTiming.bound` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npu.timing.estimate import OpTiming, Timing
from npu.timing.hardware import PIPELINES
from npu.timing.memories import adapter_port
from npu.timing.profile import PORT_NAMES

ARRAY = "mac"


@dataclass(frozen=True)
class PortRoof:
    """Bytes a cycle of a port: `total` both ways together, `each` one way."""

    total: float
    each: float

    def cycles(self, read: int, written: int) -> float:
        """That so many bytes take at least."""
        return max((read + written) / self.total, max(read, written) / self.each)


@dataclass(frozen=True)
class Point:
    """One operation with MACs.

    Attributes:
        number: of the operation in `Timing.ops`.
        intensity: MACs a byte, by port that it uses.
        reached, roof: MACs a cycle.
        limit: what the roof is: "mac" or a port.
    """

    number: int
    intensity: Mapping[str, float]
    reached: float
    roof: float
    limit: str


@dataclass(frozen=True)
class Roofline:
    """`peak` in MACs a cycle, the ports' bandwidth, and a point for each operation that computes."""

    peak: float
    ports: Mapping[str, PortRoof]
    points: tuple[Point, ...]


def roofline(timing: Timing) -> Roofline:
    """Of a finished estimate."""
    config, pipeline = timing.config, PIPELINES[timing.config.family]
    ports = {}
    for number, name in enumerate(PORT_NAMES[config.family]):
        total, each = adapter_port(config, timing.profile, pipeline, number).limits[:2]
        ports[name] = PortRoof(min(total, 2 * each) * pipeline.beat_bytes, each * pipeline.beat_bytes)
    points = [_point(n, op, config.macs, ports) for n, op in enumerate(timing.ops) if op.macs and op.cycles]
    return Roofline(config.macs, ports, tuple(points))


def _point(number: int, op: OpTiming, peak: int, ports: Mapping[str, PortRoof]) -> Point:
    least = {ARRAY: op.macs / peak}
    intensity = {}
    for name, traffic in op.traffic.items():
        least[name] = ports[name].cycles(traffic.bytes_read, traffic.bytes_written)
        intensity[name] = op.macs / (traffic.bytes_read + traffic.bytes_written)
    limit = max(least, key=lambda name: least[name])
    # An operation that started before the one before had ended can be charged less than its own time.
    reached = op.macs / max(op.cycles, least[limit])
    return Point(number, intensity, reached, op.macs / least[limit], limit)

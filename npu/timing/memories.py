# SPDX-License-Identifier: Apache-2.0
"""The two ports of an NPU behind their timing adapters, and how fast streams of requests go through them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from npu.config import Family, NpuConfig
from npu.timing.hardware import READ_BUFFERS, Pipeline
from npu.timing.ports import Port, Rate, stream_rate
from npu.timing.profile import EXT, SRAM, MemoryMap, TimingProfile


def adapter_port(config: NpuConfig, profile: TimingProfile, pipeline: Pipeline, number: int) -> Port:
    """An empty port, SRAM or EXT, behind its adapter."""
    width = (config.sram_ports, config.ext_ports)[number] or 1
    side_by_side = _side_by_side(config, number)
    return Port(
        profile.ports[number],
        bandwidth=width,
        adapters=2 if config.family is Family.U85 and number == SRAM else 1,
        permitted=(side_by_side, side_by_side * pipeline.write_efficiency),
        burst=pipeline.ext_burst,
    )


def whole_bursts(room: float, burst: float) -> float:
    """Beats of the bursts that fit into a buffer, at least one: a read is asked for when it has room."""
    return max(room // burst, 1) * burst


def _side_by_side(config: NpuConfig, port: int) -> float:
    """Requests that a stream may have on two SRAM ports at once: U85-2048."""
    return 2.0 if port == SRAM and config.sram_ports > 2 else 1.0


class Memories:
    """Timing of the memories as an NPU sees it.

    Args:
        config: the NPU.
        profile, memory: timing of the two ports, and which of them each region is behind.
        pipeline: depths and delays.
    """

    def __init__(self, config: NpuConfig, profile: TimingProfile, memory: MemoryMap, pipeline: Pipeline):
        self.config, self.profile, self.map, self.pipeline = config, profile, memory, pipeline
        self.adapters = profile.ports
        self._rates: dict[tuple[int, float, bool, float], Rate] = {}

    def ports(self) -> tuple[Port, Port]:
        """Empty ones."""
        sram, ext = (adapter_port(self.config, self.profile, self.pipeline, number) for number in (SRAM, EXT))
        return sram, ext

    def port(self, region: int) -> int:
        """The port that a region is behind."""
        return self.map.regions[region]

    def rate(self, port: int, burst: float, *, write: bool = False, buffer: float = 0) -> Rate:
        """Rate of a stream; `buffer` is the beats that its reader has room for, 0 enough."""
        key = port, burst, write, buffer
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = self._make_rate(port, burst, write, buffer)
        return rate

    def _make_rate(self, port: int, burst: float, write: bool, buffer: float) -> Rate:
        pipeline, timing = self.pipeline, self.adapters[port]
        burst = min(burst, pipeline.sram_burst if port == SRAM else pipeline.ext_burst)
        side_by_side = _side_by_side(self.config, port)
        rate = stream_rate(
            timing,
            burst=burst,
            top=side_by_side,
            write=write,
            permitted=side_by_side * (pipeline.write_efficiency if write else 1.0),
            pulses=pipeline.adapter_pulses,
        )
        if not buffer or write or not timing.rlatency:
            return rate
        room = whole_bursts(buffer, burst)
        return Rate(min(rate.beats, room / (timing.rlatency + burst)), rate.slots, rate.write, rate.top)

    @cached_property
    def transfer_rates(self) -> tuple[Rate, Rate]:
        """Of a DMA's reads. Others share the transactions in flight fairly, so none is charged."""
        sram, ext = (self._transfer_rate(port) for port in (SRAM, EXT))
        return sram, ext

    def _transfer_rate(self, port: int) -> Rate:
        rate = self.rate(port, self.pipeline.ext_burst, buffer=self.buffers("dma"))
        return Rate(rate.beats, 0.0, False, rate.top)

    def buffers(self, name: str, efficiency: float | None = None) -> float:
        """Beats of a U85's read buffer that count; 0 where the stream is not limited by one."""
        if self.config.family is not Family.U85:
            return 0
        share = self.pipeline.buffer_efficiency if efficiency is None else efficiency
        buffers: Mapping[str, int] = vars(READ_BUFFERS[self.config.macs])
        return share * buffers[name]

# SPDX-License-Identifier: Apache-2.0
"""Numbers of the hardware that the cycle model needs beside `npu.config`, and where each comes from.

[Vela] is restated from Vela's public performance tables; [derived] follows from published counters by
arithmetic; [fit] was chosen so that the model meets Arm's FVP on the cells of
``tests/validation/fvp_cycles.py``, and says on which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from npu.config import Family, NpuConfig

SUB_KERNEL = 8
"""Rows and columns, dilation included, of the window that the MAC array walks at a time."""


@dataclass(frozen=True)
class Pipeline:
    """Depths and delays of a family, in cycles unless noted.

    Attributes:
        beat_bytes: width of a port.
        sram_burst, ext_burst: longest burst of a port in beats. U85: 64 and 128 bytes, the burst lengths in
            Vela's configuration [Vela]; U55 64 bytes, the driver's limit.
        feature_map_burst: longest burst of a feature map in beats.
        nhwc_write_burst: beats of a store to an NHWC map, whatever the block [derived, single layers].
        command_burst: beats fetched at once into the command queue [U85: derived, the published run with one
            read in flight has no time for shorter ones].
        command_prefetch: such bursts in flight or unread [fit, rnnoise].
        kernel_queue, dma_queue: operations the command processor has issued and that are not finished; a
            further one makes it wait [fit, rnnoise].
        op_start, dma_start: from issue to the first request [fit; no influence worth naming].
        weight_start: from the first weights to the MAC array [fit; no influence worth naming].
        drain: from the last response of a store until an operation that depends on it may start [fit,
            rnnoise].
        block_overhead: per block, in the MAC array and in the output stage [fit].
        tap_overhead: per kernel element of a block, U85 [fit on kws and single layers; Vela has 2 to 3].
        weight_lookahead: how long before a block its weights are asked for [fit; flat].
        start_fill: share of the input buffer that has to be full, in whole steps, before a window that it
            holds is begun, unless the window is smaller; U85 [fit, single layers: 0.28 to 0.37 are equal].
        write_efficiency: share of the permitted writes in flight that is reached [Vela; confirmed by single
            layers].
        buffer_efficiency: a stream with a buffer of n beats moves at most ``efficiency * n / (latency +
            burst)`` beats a cycle [U85: fit, rnnoise and mobilenet; Vela has 0.8].
        fast_weight_efficiency: the same for weights in the fast format [Vela; confirmed by single layers].
        adapter_pulses: the adapter's PULSE_OFF holds addresses back. True on Corstone-300 [derived, rnnoise
            on U55-256]; the published sweeps on Corstone-320 show no trace of it.
        weights_ahead: while an operation waits for the one before, its weights are read, as many as their
            buffer has room for. True on U85 [derived, the published sweep of reads in flight]; the cells of
            U55 and U65 show no trace of it.
        core_weight_buffer: beats of weights that a U65's core has room for, 0 unlimited [assumed to be those
            of the smallest U85; the cells of U65-256 agree].
    """

    beat_bytes: int
    sram_burst: int
    ext_burst: int
    feature_map_burst: int
    nhwc_write_burst: int
    command_burst: int
    block_overhead: int
    adapter_pulses: bool
    command_prefetch: int = 3
    kernel_queue: int = 4
    dma_queue: int = 2
    op_start: int = 20
    dma_start: int = 10
    weight_start: int = 8
    drain: int = 100
    tap_overhead: int = 3
    weight_lookahead: int = 64
    start_fill: float = 0.3
    write_efficiency: float = 0.8
    buffer_efficiency: float = 0.9
    fast_weight_efficiency: float = 0.8
    weights_ahead: bool = False
    core_weight_buffer: int = 0


PIPELINES: Mapping[Family, Pipeline] = MappingProxyType(
    {
        Family.U55: Pipeline(
            beat_bytes=8,
            sram_burst=8,
            ext_burst=8,
            feature_map_burst=8,
            nhwc_write_burst=2,
            command_burst=8,
            block_overhead=32,
            adapter_pulses=True,
        ),
        Family.U65: Pipeline(
            beat_bytes=16,
            sram_burst=8,
            ext_burst=8,
            feature_map_burst=4,
            nhwc_write_burst=1,
            command_burst=4,
            block_overhead=24,
            adapter_pulses=True,
            core_weight_buffer=128,
            buffer_efficiency=0.8,
        ),
        Family.U85: Pipeline(
            beat_bytes=16,
            sram_burst=4,
            ext_burst=8,
            feature_map_burst=16,
            nhwc_write_burst=1,
            command_burst=8,
            block_overhead=0,
            adapter_pulses=False,
            command_prefetch=2,
            drain=190,
            weights_ahead=True,
        ),
    }
)


@dataclass(frozen=True)
class ReadBuffers:
    """Beats that a U85's read channels have room for: Vela's table of channel buffers."""

    dma: int
    ifm_stream: int
    weights: int
    fast_weights: int
    ifm: int


READ_BUFFERS: Mapping[int, ReadBuffers] = MappingProxyType(
    {
        128: ReadBuffers(64, 64, 128, 128, 104),
        256: ReadBuffers(104, 104, 256, 128, 128),
        512: ReadBuffers(128, 128, 256, 256, 128),
        1024: ReadBuffers(256, 256, 416, 208, 256),
        2048: ReadBuffers(256, 256, 512, 256, 256),
    }
)
"""By MACs. Vela has 128 beats of weights for 256; the published sweep of read latency needs 256 [derived]."""

SCALE_BUFFER_BYTES = 256
"""Scales in flight: a block waits for a read latency for each such amount [Vela]; for at least one [derived,
kws on U85-2048]."""

IFM_BUFFER_BYTES: Mapping[int, int] = MappingProxyType(
    {128: 16_000, 256: 16_384, 512: 32_768, 1024: 32_768, 2048: 40_000}
)
"""Input that a U85 keeps while it computes all OFM depth blocks of a place, by MACs. Bracketed by the beats
of the FVP: 128 and 512 within 20 %, 2048 between 19,000 and 47,000, 256 and 1024 assumed."""


# --- output stage: cycles per element [Vela] ----------------------------------------------------------------


@dataclass(frozen=True)
class OutputRates:
    """U55 and U65."""

    binary_32: float
    unary_32: float
    mul_32: float
    mul: float
    simple_add: float
    advanced_add: float
    max_pool: float
    default: float
    table: float
    relu: float


_RATES_256 = OutputRates(0.625, 1.125, 0.5, 0.375, 0.5, 0.75, 0.125, 0.25, 1, 0.25)

OUTPUT_RATES: Mapping[int, OutputRates] = MappingProxyType(
    {
        32: OutputRates(2, 3, 3, 3, 4, 6, 1, 2, 1, 1),
        64: OutputRates(1, 1.5, 1.5, 1.5, 2, 3, 0.5, 1, 1, 1),
        128: OutputRates(0.75, 1.25, 0.75, 0.75, 1, 1.5, 0.25, 0.5, 1, 0.5),
        256: _RATES_256,
        512: OutputRates(0.3125, 0.5625, 0.25, 0.1875, 0.25, 0.375, 0.0625, 0.125, 0.5, 0.125),
    }
)
"""By MACs."""


@dataclass(frozen=True)
class OutputRates85:
    """U85: by width of the result, and what reordering axes costs."""

    bits_8: float
    bits_16: float
    bits_32: float
    bits_64: float
    chained_32: float
    binary_32: float
    table: float
    transpose: float


OUTPUT_RATES_85: Mapping[int, OutputRates85] = MappingProxyType(
    {
        128: OutputRates85(0.5, 0.5, 0.5, 1, 1, 1, 0.5, 1),
        256: OutputRates85(0.25, 0.25, 0.25, 0.5, 0.5, 0.5, 0.25, 0.5),
        512: OutputRates85(0.125, 0.125, 0.25, 0.5, 0.25, 0.25, 0.125, 0.25),
        1024: OutputRates85(0.0625, 0.125, 0.25, 0.5, 0.125, 0.25, 0.0625, 0.125),
        2048: OutputRates85(0.03125, 0.0625, 0.125, 0.25, 0.0625, 0.125, 0.03125, 0.0625),
    }
)
DIVISION_CYCLES = 33


def output_group(config: NpuConfig) -> int:
    """Channels the output stage rounds up to: 8 a core on U55 and U65, 1 on U85 [derived, yolo]."""
    return 1 if config.family is Family.U85 else 8 * config.cores


# --- weight decoder -----------------------------------------------------------------------------------------

WEIGHTS_PER_CYCLE = 8
"""U55 and U65, a core [Vela]."""
FAST_WEIGHTS_PER_CYCLE = 32
"""U85, fast format; also the most a core gets out of runs of zeros."""
STREAM_BYTES_PER_CYCLE = 7
"""U85, a core's standard stream [fit on the two published MLPs, dense and 95 % pruned, two digits each]."""

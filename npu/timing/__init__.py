# SPDX-License-Identifier: Apache-2.0
"""Cycle model of the Ethos-U: what a command stream takes, from the stream alone.

hardware   numbers of the pipeline, with their source     profile   memory timing, region to port
geometry   blocks, windows, sub-kernels                   traffic   data beats of feature maps
compute    MAC array, output stage, weight decoder        plan      an operation as blocks
ports      bandwidth and transactions in flight           memories  both ports and the rates through them
demand     what an operation asks of all that             kernel    an operation in the pipeline
timeline   everything side by side                        estimate  the entry point
counters   as PMU events                                  roofline  what array and ports would allow
"""

from npu.timing.document import document
from npu.timing.estimate import OpTiming, PortTraffic, Timing, estimate
from npu.timing.profile import (
    PROFILES,
    MemoryMap,
    PortTiming,
    TimingProfile,
    default_profile,
    memory_map,
    memory_map_from_registers,
    profile_for,
    timing_profile,
)
from npu.timing.roofline import Roofline, roofline

__all__ = [
    "PROFILES",
    "MemoryMap",
    "OpTiming",
    "PortTiming",
    "PortTraffic",
    "Roofline",
    "Timing",
    "TimingProfile",
    "default_profile",
    "document",
    "estimate",
    "memory_map",
    "memory_map_from_registers",
    "profile_for",
    "roofline",
    "timing_profile",
]

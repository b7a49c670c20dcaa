# SPDX-License-Identifier: Apache-2.0
"""What the memories behind the NPU's two ports can do, as data.

On Arm's FVPs and FPGA images the memory timing is that of the *timing adapters* between NPU and memory, which
the firmware programs at start-up from its system configuration and memory mode. A profile holds the values of
one firmware for one configuration; the numbers are those of the CMake files of Arm's ML evaluation kit
(``scripts/cmake/timing_adapter``) and of ExecuTorch (``backends/arm/scripts/corstone_utils.cmake``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from npu.config import Family, NpuConfig
from npu.errors import NpuError


class UnknownProfile(NpuError):
    """A timing-adapter profile, or a system configuration and memory mode, that nobody ships."""


@dataclass(frozen=True)
class PortTiming:
    """Settings of one timing adapter; the field names are those of its registers.

    Attributes:
        maxr, maxw: read and write transactions in flight; 0 is no limit.
        rlatency, wlatency: cycles from address to first data, and from last data to response.
        pulse_on, pulse_off: cycles in which addresses pass, and in which they are held back.
        bwcap: data beats in one pulse (on and off together); 0 is no limit.
    """

    maxr: int = 0
    maxw: int = 0
    rlatency: int = 0
    wlatency: int = 0
    pulse_on: int = 0
    pulse_off: int = 0
    bwcap: int = 0

    @property
    def period(self) -> int:
        """Cycles of a pulse."""
        return self.pulse_on + self.pulse_off


@dataclass(frozen=True)
class TimingProfile:
    """Both adapters: `sram` at AXI0 of U55/U65 and the SRAM ports of U85, `ext` at AXI1 and EXT."""

    name: str
    sram: PortTiming
    ext: PortTiming

    @property
    def ports(self) -> tuple[PortTiming, PortTiming]:
        """By port number, see `MemoryMap`."""
        return self.sram, self.ext


_U55_SRAM = PortTiming(8, 8, 32, 32, 3999, 1, 4000)
_U85_LOW_SRAM = PortTiming(8, 8, 16, 16, 3999, 1, 4000)
_U85_SRAM = PortTiming(8, 8, 32, 32, 3999, 1, 4000)
_U65_SRAM = PortTiming(16, 16, 32, 32, 3999, 1, 4000)
_DRAM_3750 = PortTiming(64, 32, 500, 250, 4000, 1000, 3750)

_TABLE = (
    TimingProfile("none", PortTiming(), PortTiming()),
    TimingProfile("mlek:ta_config_u55_high_end", _U55_SRAM, PortTiming(2, 0, 64, 0, 320, 80, 50)),
    TimingProfile("mlek:ta_config_u65_high_end", _U65_SRAM, PortTiming(24, 12, 500, 250, 4000, 1000, 1172)),
    TimingProfile(
        "mlek:ta_config_u85_sys_dram_low",
        _U85_LOW_SRAM,
        PortTiming(24, 12, 250, 125, 4000, 1000, 2344),
    ),
    TimingProfile("mlek:ta_config_u85_sys_dram_mid", _U85_SRAM, _DRAM_3750),
    TimingProfile("mlek:ta_config_u85_sys_dram_high", _U85_SRAM, _DRAM_3750),
    TimingProfile(
        "executorch:Ethos_U55_High_End_Embedded:Shared_Sram", _U55_SRAM, PortTiming(2, 0, 64, 0, 320, 80, 50)
    ),
    TimingProfile("executorch:Ethos_U55_High_End_Embedded:Sram_Only", _U55_SRAM, _U55_SRAM),
    TimingProfile(
        "executorch:Ethos_U55_Deep_Embedded:Shared_Sram",
        PortTiming(4, 4, 8, 8, 3999, 1, 4000),
        PortTiming(2, 0, 32, 0, 360, 40, 25),
    ),
    TimingProfile(
        "executorch:Ethos_U65_High_End:Dedicated_Sram",
        PortTiming(8, 8, 32, 32, 3999, 1, 4000),
        _DRAM_3750,
    ),
    TimingProfile(
        "executorch:Ethos_U65_High_End:Shared_Sram",
        PortTiming(16, 16, 32, 32, 15999, 1, 16000),
        PortTiming(24, 12, 500, 250, 4000, 1000, 3750),
    ),
    TimingProfile(
        "executorch:Ethos_U85_SYS_DRAM_Low:Dedicated_Sram",
        _U85_LOW_SRAM,
        PortTiming(24, 12, 250, 125, 4000, 1000, 2344),
    ),
    TimingProfile("executorch:Ethos_U85_SYS_DRAM_Low:Sram_Only", _U85_LOW_SRAM, _U85_LOW_SRAM),
    TimingProfile("executorch:Ethos_U85_SYS_DRAM_Mid:Dedicated_Sram", _U85_SRAM, _DRAM_3750),
    TimingProfile("executorch:Ethos_U85_SYS_DRAM_Mid:Sram_Only", _U85_SRAM, _U85_SRAM),
    TimingProfile("executorch:Ethos_U85_SYS_DRAM_High:Dedicated_Sram", _U85_SRAM, _DRAM_3750),
)

PROFILES: Mapping[str, TimingProfile] = MappingProxyType({profile.name: profile for profile in _TABLE})
"""Profiles as ``firmware:configuration[:memory mode]``; "none" is memory without adapters."""


def timing_profile(name: str) -> TimingProfile:
    """The profile of a name.

    Raises:
        UnknownProfile: no such profile; the message lists the known ones.
    """
    profile = PROFILES.get(name)
    if profile is None:
        raise UnknownProfile(f"unknown timing profile {name!r}; known: {', '.join(PROFILES)}")
    return profile


_SIZES = ("_128", "_256", "_512", "_1024", "_2048")
_MLEK = MappingProxyType(
    {
        "Ethos_U55_High_End_Embedded": "mlek:ta_config_u55_high_end",
        "Ethos_U65_High_End": "mlek:ta_config_u65_high_end",
        "Ethos_U85_SYS_DRAM_Low": "mlek:ta_config_u85_sys_dram_low",
        "Ethos_U85_SYS_DRAM_Mid": "mlek:ta_config_u85_sys_dram_mid",
        "Ethos_U85_SYS_DRAM_High": "mlek:ta_config_u85_sys_dram_high",
    }
)


def profile_for(system_config: str, memory_mode: str, firmware: str = "executorch") -> TimingProfile:
    """What the firmware ("executorch" or "mlek") programs for Vela's system configuration and memory mode.

    Vela's own configuration names end in the MAC count (``Ethos_U85_SYS_DRAM_Mid_512``); ExecuTorch's do not.

    Raises:
        UnknownProfile: that firmware has no settings for the pair.
    """
    system, mode = system_config, memory_mode
    for size in _SIZES:
        system = system.removesuffix(size)
    if mode.startswith("Dedicated_Sram"):
        mode = "Dedicated_Sram"
    name = _MLEK.get(system, "") if firmware == "mlek" else f"{firmware}:{system}:{mode}"
    if name not in PROFILES:
        raise UnknownProfile(f"no {firmware} timing profile for {system_config} with {memory_mode}")
    return PROFILES[name]


def default_profile(config: NpuConfig) -> TimingProfile:
    """What Arm's ML evaluation kit programs for an NPU unless told otherwise."""
    if config.family is Family.U85:
        return PROFILES[f"mlek:ta_config_u85_sys_dram_{'low' if config.macs <= 256 else 'mid'}"]
    return PROFILES[f"mlek:ta_config_{config.family.name.lower()}_high_end"]


# --- which port a region is behind --------------------------------------------------------------------------

SRAM, EXT = 0, 1
"""Port numbers: AXI0 and AXI1 of U55 and U65, SRAM and EXT of U85."""

PORT_NAMES: Mapping[Family, tuple[str, str]] = MappingProxyType(
    {Family.U55: ("AXI0", "AXI1"), Family.U65: ("AXI0", "AXI1"), Family.U85: ("SRAM", "EXT")}
)


@dataclass(frozen=True)
class MemoryMap:
    """Port of each of the eight regions, and of the command stream."""

    regions: tuple[int, ...]
    commands: int


_MODES: Mapping[str, MemoryMap] = MappingProxyType(
    {
        "Sram_Only": MemoryMap((SRAM,) * 8, SRAM),
        "Shared_Sram": MemoryMap((EXT, *(SRAM,) * 7), EXT),
        "Dedicated_Sram": MemoryMap((EXT, EXT, SRAM, *(EXT,) * 5), EXT),
    }
)


def memory_map(memory_mode: str) -> MemoryMap:
    """Ports as drivers set them for a memory mode; Dedicated_Sram_384KB and the like are Dedicated_Sram.

    Raises:
        UnknownProfile: no such memory mode.
    """
    mode = "Dedicated_Sram" if memory_mode.startswith("Dedicated_Sram") else memory_mode
    if mode not in _MODES:
        raise UnknownProfile(f"unknown memory mode {memory_mode!r}; known: {', '.join(_MODES)}")
    return _MODES[mode]


def memory_map_from_registers(
    config: NpuConfig, regioncfg: int, qconfig: int, attributes: tuple[int, ...]
) -> MemoryMap:
    """Ports as REGIONCFG and QCONFIG choose them, two bits a region.

    U55 and U65: values 0 and 1 are AXI0, 2 and 3 AXI1. U85: the value selects one of the four MEM_ATTR
    registers (`attributes`), whose bit 2 is the port.
    """

    def port(choice: int) -> int:
        if config.family is Family.U85:
            return attributes[choice] >> 2 & 1
        return choice >> 1

    regions = tuple(port(regioncfg >> 2 * region & 3) for region in range(8))
    return MemoryMap(regions, port(qconfig & 3))

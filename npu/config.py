# SPDX-License-Identifier: Apache-2.0
"""The Ethos-U configurations: one table, and the CONFIG and ID register words that follow from it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from npu.errors import UnknownConfig


class Family(enum.Enum):
    """Generation of the NPU; the value is the `product` field of the CONFIG register."""

    U55 = 0
    U65 = 1
    U85 = 2


_ID_WORDS = {Family.U55: 0x10066001, Family.U65: 0x10066001, Family.U85: 0x20007000}
_STREAM_VERSION = {Family.U55: 0, Family.U65: 0, Family.U85: 1}


@dataclass(frozen=True)
class NpuConfig:
    """One NPU configuration, named as Vela names it.

    Attributes:
        macs: 8x8-bit multiply-accumulates per cycle of all cores together.
        cores: weight streams (and scale streams on U65) an operation is split into.
        ofm_ublock: OFM microblock (height, width, depth) of U55/U65, None on U85 where the stream chooses it.
        shram_kb: shared internal RAM of all cores in KiB (U55/U65; 0 on U85).
        sram_ports, ext_ports: AXI ports (U85; 0 on U55/U65, whose ports are fixed).
    """

    name: str
    family: Family
    macs: int
    cores: int = 1
    ofm_ublock: tuple[int, int, int] | None = None
    shram_kb: int = 0
    sram_ports: int = 0
    ext_ports: int = 0

    def ofm_ublock_depth(self, microblock: tuple[int, int] = (1, 1)) -> int:
        """OFM channels computed together; on U85 macs / 8 / (h * w) of the `microblock` (h, w)."""
        if self.ofm_ublock is not None:
            return self.ofm_ublock[2]
        return self.macs // 8 // (microblock[0] * microblock[1])

    @property
    def config_word(self) -> int:
        """CONFIG register: log2 macs, stream version, memories and ports, product."""
        word = _log2(self.macs) | _STREAM_VERSION[self.family] << 4 | self.family.value << 28
        if self.family is Family.U85:
            return word | _log2(self.sram_ports) << 8 | _log2(self.ext_ports) << 10 | _log2(self.cores) << 12
        return word | self.shram_kb << 8

    @property
    def id_word(self) -> int:
        """Architecture version that streams for this family are built for (ID register layout)."""
        return _ID_WORDS[self.family]


def _log2(value: int) -> int:
    return value.bit_length() - 1


_TABLE = (
    NpuConfig("ethos-u55-32", Family.U55, 32, ofm_ublock=(1, 1, 4), shram_kb=16),
    NpuConfig("ethos-u55-64", Family.U55, 64, ofm_ublock=(1, 1, 8), shram_kb=16),
    NpuConfig("ethos-u55-128", Family.U55, 128, ofm_ublock=(1, 2, 8), shram_kb=24),
    NpuConfig("ethos-u55-256", Family.U55, 256, ofm_ublock=(2, 2, 8), shram_kb=48),
    NpuConfig("ethos-u65-256", Family.U65, 256, ofm_ublock=(2, 2, 8), shram_kb=48),
    NpuConfig("ethos-u65-512", Family.U65, 512, cores=2, ofm_ublock=(2, 2, 8), shram_kb=96),
    NpuConfig("ethos-u85-128", Family.U85, 128, sram_ports=2, ext_ports=1),
    NpuConfig("ethos-u85-256", Family.U85, 256, sram_ports=2, ext_ports=1),
    NpuConfig("ethos-u85-512", Family.U85, 512, cores=2, sram_ports=2, ext_ports=1),
    NpuConfig("ethos-u85-1024", Family.U85, 1024, cores=4, sram_ports=2, ext_ports=2),
    NpuConfig("ethos-u85-2048", Family.U85, 2048, cores=4, sram_ports=4, ext_ports=2),
)

CONFIGS: Mapping[str, NpuConfig] = MappingProxyType({config.name: config for config in _TABLE})

_DEFAULTS = {"ethos-u55": "ethos-u55-128", "ethos-u65": "ethos-u65-256", "ethos-u85": "ethos-u85-256"}


def npu_config(name: str) -> NpuConfig:
    """The configuration called `name`; a bare family name stands for its default size.

    Raises:
        UnknownConfig: no such configuration; the message lists the known ones.
    """
    config = CONFIGS.get(_DEFAULTS.get(name, name))
    if config is None:
        raise UnknownConfig(f"unknown NPU configuration {name!r}; known: {', '.join((*_DEFAULTS, *CONFIGS))}")
    return config


def from_config_word(word: int) -> NpuConfig:
    """The configuration a CONFIG word names, by what the driver compares: product, macs and stream version.

    Raises:
        UnknownConfig: no configuration has this word.
    """
    compared = 0xF00000FF
    for config in _TABLE:
        if (config.config_word ^ word) & compared == 0:
            return config
    raise UnknownConfig(f"unknown NPU configuration word {word:#010x}")

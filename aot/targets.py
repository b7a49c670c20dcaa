# SPDX-License-Identifier: Apache-2.0
"""The compile targets: one table with each NPU family's default Vela settings and the boards to fit into.

The NPU configurations themselves come from `npu.config`. The defaults are those that ExecuTorch 1.5.1's
`EthosUCompileSpec` takes when nothing is asked for (a test compares them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from npu.config import CONFIGS, Family, NpuConfig, npu_config
from npu.errors import UnknownConfig
from report.errors import UsageError

DEFAULT_TARGET = "ethos-u85-256"


@dataclass(frozen=True)
class Board:
    """Memory of the reference system that a family's programs run on first.

    Attributes:
        sram_bytes: on-chip SRAM on the NPU's first AXI port. Corstone SSE-300: 2 MiB at 0x31000000;
            SSE-320: 4 MiB at 0x31000000.
    """

    name: str
    sram_bytes: int


@dataclass(frozen=True)
class FamilySettings:
    """What is the same for every MAC count of a family.

    Attributes:
        system_config, memory_mode: Vela sections taken by default.
        system_config_prefix: how the names of the family's system configurations begin.
    """

    system_config: str
    memory_mode: str
    system_config_prefix: str
    board: Board


_SSE300 = Board("Corstone-300", 2 << 20)
_SSE320 = Board("Corstone-320", 4 << 20)

FAMILIES: Mapping[Family, FamilySettings] = MappingProxyType(
    {
        Family.U55: FamilySettings("Ethos_U55_High_End_Embedded", "Shared_Sram", "Ethos_U55_", _SSE300),
        Family.U65: FamilySettings("Ethos_U65_High_End", "Dedicated_Sram_384KB", "Ethos_U65_", _SSE300),
        Family.U85: FamilySettings("Ethos_U85_SYS_DRAM_Mid", "Sram_Only", "Ethos_U85_", _SSE320),
    }
)


def find_target(name: str) -> NpuConfig:
    """The NPU configuration that `-t name` means; a bare family name stands for its default size.

    Raises:
        UsageError: no such target; the message says what the family has, or offers the nearest name.
    """
    try:
        return npu_config(name.lower())
    except UnknownConfig:
        raise UsageError(
            f"unknown target {name!r}", where="--target", hint=_suggestion(name.lower())
        ) from None


def _suggestion(name: str) -> str:
    family = [known for known in CONFIGS if known.rsplit("-", 1)[0] == name.rsplit("-", 1)[0]]
    if family:
        return f"this NPU comes as {', '.join(family)}"
    near = get_close_matches(name, CONFIGS, n=1)
    return (f"did you mean {near[0]}? " if near else "") + f"targets: {', '.join(CONFIGS)}"


def find_targets(names: list[str]) -> list[NpuConfig]:
    """The targets of a repeated, comma separated option, each once, in the order given."""
    parts = [part.strip() for name in names for part in name.split(",") if part.strip()]
    return list({target.name: target for target in map(find_target, parts)}.values())

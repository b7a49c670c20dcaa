# SPDX-License-Identifier: Apache-2.0
"""NPU cycles of a compiled file, operation by operation, as one document: its networks, estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aot.artefact import Artefact, Network
from aot.targets import FAMILIES
from npu import timing
from npu.config import NpuConfig, from_config_word
from npu.errors import NpuError
from npu.stream import CommandStream, parse
from npu.timing.accuracy import ACCURACY
from report import describe
from report.errors import UsageError

CLOCK_HZ = 1e9
"""Of the NPU, for times, unless another is asked for."""


@dataclass(frozen=True)
class Wanted:
    """What to assume; None takes what the file was compiled for, then the family's.

    Attributes:
        timing_adapter: memory timing by name; None takes ExecuTorch's for the system.
    """

    system_config: str | None = None
    memory_mode: str | None = None
    timing_adapter: str | None = None
    clock_hz: float = CLOCK_HZ


def profile(file: Artefact, wanted: Wanted) -> dict[str, Any]:
    """The profile as data.

    Raises:
        UsageError: no Ethos-U network in the file, or no timing for its system.
    """
    if not file.networks:
        raise UsageError("no Ethos-U network to profile", where=str(file.path), hint="compile it for one")
    try:
        streams = [parse(network.vela.cmd_data) for network in file.networks]
        config = from_config_word(streams[0].config_word)
        system, mode = _system(file, wanted, config)
        memory = timing.memory_map(mode)
        name = wanted.timing_adapter
        adapters = timing.timing_profile(name) if name else timing.profile_for(system, mode)
        pairs = zip(file.networks, streams, strict=True)
        networks = [_network(n, s, timing.estimate(s, config, adapters, memory)) for n, s in pairs]
    except NpuError as error:
        raise UsageError("cannot profile", where=str(file.path), why=str(error)) from error
    return {
        "file": str(file.path),
        "target": config.name,
        "system_config": system,
        "memory_mode": mode,
        "timing_adapter": adapters.name,
        "clock_hz": wanted.clock_hz,
        "nature": "simulated",
        "accuracy": str(ACCURACY[config.family]),
        "networks": networks,
    }


def _system(file: Artefact, wanted: Wanted, config: NpuConfig) -> tuple[str, str]:
    """System configuration and memory mode: as asked for, as compiled, or the family's."""
    data = file.report.data if file.report else {}
    family = FAMILIES[config.family]
    system = wanted.system_config or data.get("system_config") or family.system_config
    return system, wanted.memory_mode or data.get("memory_mode") or family.memory_mode


def _network(network: Network, stream: CommandStream, found: timing.Timing) -> dict[str, Any]:
    document = {
        "id": network.number,
        **timing.document(found),
        "stream": {"first_command": stream.base_offset},
    }
    return describe.attach_origins(document, network.queue, network.origins)

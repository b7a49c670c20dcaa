# SPDX-License-Identifier: Apache-2.0
"""Vela's configuration file: what a system configuration and a memory mode mean, checked at the door.

Vela reads an .ini file with sections ``[System_Config.NAME]`` (which memory is behind each AXI port) and
``[Memory_Mode.NAME]`` (which port holds constants, arena and cache). Not every pair is possible, and Vela
takes a configuration of another NPU family without a word; both are refused here.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass
from pathlib import Path

from aot.targets import FAMILIES
from npu.config import NpuConfig
from report.errors import UsageError

DEFAULT_INI = "Arm/vela.ini"
"""Vela's own file, by the name under which Vela finds it."""


@dataclass(frozen=True)
class VelaSettings:
    """A checked choice of system configuration and memory mode.

    Attributes:
        ini_name: what a .pte records as its configuration file: never a path of this machine.
        ini_path: the file itself.
        arena_in_sram, constants_in_sram: where Vela puts the scratch tensor, and weights with commands.
        cache_bytes: fast scratch of a Dedicated_Sram mode, None where the mode sets no limit.
    """

    system_config: str
    memory_mode: str
    ini_name: str
    ini_path: Path
    arena_in_sram: bool
    constants_in_sram: bool
    cache_bytes: int | None


def resolve_settings(
    target: NpuConfig, system_config: str | None, memory_mode: str | None, config: str | None
) -> VelaSettings:
    """Choose and check Vela's settings for `target`; None takes the family's default.

    Raises:
        UsageError: the file or a section is missing, the system configuration belongs to another family, or
            the memory mode cannot exist on it.
    """
    family = FAMILIES[target.family]
    ini_name, ini_path = _find_ini(config)
    ini = _read_ini(ini_path)
    system_config = system_config or family.system_config
    memory_mode = memory_mode or family.memory_mode
    _check_section(ini, ini_path, "System_Config", system_config, "--system_config")
    _check_section(ini, ini_path, "Memory_Mode", memory_mode, "--memory_mode")
    _check_family(target, system_config)
    areas = _memory_areas(ini, system_config, memory_mode)
    _check_arena(target, system_config, memory_mode, areas["arena"])
    cache = _lookup(ini, f"Memory_Mode.{memory_mode}", "arena_cache_size")
    return VelaSettings(
        system_config,
        memory_mode,
        ini_name,
        ini_path,
        arena_in_sram=areas["arena"] == "Sram",
        constants_in_sram=areas["const"] == "Sram",
        cache_bytes=int(cache) if cache else None,
    )


def _find_ini(config: str | None) -> tuple[str, Path]:
    """Name and path of the configuration file: Vela's own ``FOLDER/FILE.ini``, or a file of the user's."""
    import ethosu

    name = config or DEFAULT_INI
    bundled = Path(next(iter(ethosu.__path__))) / "config_files" / name
    if bundled.is_file() and not Path(name).is_absolute():
        return name, bundled
    path = Path(name)
    if not path.is_file():
        raise UsageError(
            f"no such Vela configuration file: {name}",
            where="--config",
            hint=f"give an .ini file, or leave the option out for Vela's own {DEFAULT_INI}",
        )
    return path.name.replace(" ", "_"), path


def _read_ini(path: Path) -> configparser.ConfigParser:
    ini = configparser.ConfigParser()
    try:
        ini.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise UsageError(f"cannot read {path}", where="--config", why=str(error)) from error
    return ini


def _names(ini: configparser.ConfigParser, kind: str) -> list[str]:
    return [name.removeprefix(f"{kind}.") for name in ini.sections() if name.startswith(f"{kind}.")]


def _check_section(ini: configparser.ConfigParser, path: Path, kind: str, name: str, option: str) -> None:
    if not ini.has_section(f"{kind}.{name}"):
        raise UsageError(
            f"{path.name} has no section [{kind}.{name}]",
            where=option,
            hint=f"it has {', '.join(_names(ini, kind)) or 'none of that kind'}",
        )


def _check_family(target: NpuConfig, system_config: str) -> None:
    """Refuse a system configuration that is named after another family (own names are free)."""
    for family, settings in FAMILIES.items():
        if family is not target.family and system_config.startswith(settings.system_config_prefix):
            raise UsageError(
                f"{system_config} is a configuration of Ethos-{family.name}, the target is {target.name}",
                where="--system_config",
                hint=f"for this target use for example {FAMILIES[target.family].system_config}",
            )


def _lookup(ini: configparser.ConfigParser, section: str, key: str, seen: tuple[str, ...] = ()) -> str | None:
    """Value of `key` in `section` or in the sections it inherits from, None where nobody sets it."""
    if section in seen or not ini.has_section(section):
        chain = " -> ".join((*seen, section))
        raise UsageError(f"section [{section}] cannot be resolved", where="--config", why=f"inherit: {chain}")
    if ini.has_option(section, key):
        return ini.get(section, key)
    if ini.has_option(section, "inherit"):
        return _lookup(ini, ini.get(section, "inherit"), key, (*seen, section))
    return None


def _memory_areas(ini: configparser.ConfigParser, system_config: str, memory_mode: str) -> dict[str, str]:
    """The memory (Sram, Dram, OnChipFlash, OffChipFlash) that holds constants and arena."""
    areas = {}
    for use in ("const", "arena"):
        port = (_lookup(ini, f"Memory_Mode.{memory_mode}", f"{use}_mem_area") or "Axi0").lower()
        areas[use] = _lookup(ini, f"System_Config.{system_config}", f"{port}_port") or "Sram"
    return areas


def _check_arena(target: NpuConfig, system_config: str, memory_mode: str, area: str) -> None:
    if area in ("Sram", "Dram"):
        return
    raise UsageError(
        f"{memory_mode} does not exist with {system_config} on {target.name}",
        where="--memory_mode",
        why=f"it would put the arena into {area}, which cannot be written",
        hint="dedicated modes need a system with DRAM (Ethos-U65, Ethos-U85); use Shared_Sram or Sram_Only",
    )

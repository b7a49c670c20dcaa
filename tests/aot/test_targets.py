# SPDX-License-Identifier: Apache-2.0
"""Targets and Vela settings: defaults equal ExecuTorch's, impossible choices are refused at the door."""

from __future__ import annotations

from pathlib import Path

import pytest

from aot.targets import FAMILIES, find_target, find_targets
from aot.vela_config import resolve_settings
from npu.config import CONFIGS, Family
from report.errors import UsageError


@pytest.mark.parametrize("name", CONFIGS)
def test_defaults_are_those_of_executorch(name: str) -> None:
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    flags = EthosUCompileSpec(name).compiler_flags
    settings = resolve_settings(find_target(name), None, None, None)
    assert f"--system-config={settings.system_config}" in flags
    assert f"--memory-mode={settings.memory_mode}" in flags
    assert f"--config={settings.ini_name}" in flags


def test_family_names_stand_for_a_size_and_lists_are_split() -> None:
    found = find_targets(["ethos-u85,ethos-u55-32", "ETHOS-U65", "ethos-u85-256"])
    assert [target.name for target in found] == ["ethos-u85-256", "ethos-u55-32", "ethos-u65-256"]


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("ethos-u55-512", "ethos-u55-32, ethos-u55-64, ethos-u55-128, ethos-u55-256"),
        ("ethosu85-256", "did you mean ethos-u85-256?"),
        ("cortex-m55", "ethos-u85-2048"),
    ],
)
def test_unknown_target_offers_what_exists(name: str, offer: str) -> None:
    with pytest.raises(UsageError, match="unknown target") as caught:
        find_target(name)
    assert offer in caught.value.hint


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("other", FAMILIES)
def test_system_config_of_another_family_is_refused(family: Family, other: Family) -> None:
    target = next(config for config in CONFIGS.values() if config.family is family)
    system_config = FAMILIES[other].system_config
    if family is other:
        assert resolve_settings(target, system_config, None, None).system_config == system_config
        return
    with pytest.raises(UsageError, match=f"Ethos-{other.name}.*{target.name}"):
        resolve_settings(target, system_config, "Sram_Only", None)


@pytest.mark.parametrize(
    ("target", "system_config", "memory_mode", "message"),
    [
        ("ethos-u55", None, "Dedicated_Sram", "Dedicated_Sram does not exist .* OffChipFlash"),
        ("ethos-u85", "Ethos_U85_SYS_Flash_High", "Dedicated_Sram_384KB", "does not exist"),
        ("ethos-u85", None, "Sram_only", r"no section \[Memory_Mode.Sram_only\].*Sram_Only"),
        ("ethos-u85", "Ethos_U85_Fast", None, r"no section \[System_Config.Ethos_U85_Fast\]"),
    ],
)
def test_impossible_settings_are_refused(
    target: str, system_config: str | None, memory_mode: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_settings(find_target(target), system_config, memory_mode, None)


def test_missing_configuration_file_is_named() -> None:
    with pytest.raises(UsageError, match="no such Vela configuration file: nowhere"):
        resolve_settings(find_target("ethos-u85"), None, None, "nowhere.ini")


def test_own_configuration_file_is_read_and_recorded_without_its_folder(tmp_path: Path) -> None:
    ini = tmp_path / "my board.ini"
    ini.write_text(
        "[System_Config.Board]\ncore_clock=4e8\naxi0_port=Sram\naxi1_port=Dram\n"
        "[Memory_Mode.Base]\nconst_mem_area=Axi1\narena_mem_area=Axi1\narena_cache_size=1000\n"
        "[Memory_Mode.Small]\ninherit=Memory_Mode.Base\narena_cache_size=65536\n"
    )
    settings = resolve_settings(find_target("ethos-u85"), "Board", "Small", str(ini))
    assert (settings.ini_name, settings.ini_path) == ("my_board.ini", ini)
    assert (settings.arena_in_sram, settings.constants_in_sram, settings.cache_bytes) == (False, False, 65536)


@pytest.mark.parametrize(
    "text", ["no section\n", "[Memory_Mode.A]\ninherit=Memory_Mode.A\n[System_Config.B]\naxi0_port=Sram\n"]
)
def test_damaged_configuration_file_is_an_error(tmp_path: Path, text: str) -> None:
    ini = tmp_path / "bad.ini"
    ini.write_text(text)
    with pytest.raises(UsageError, match="--config"):
        resolve_settings(find_target("ethos-u85"), "B", "A", str(ini))

# SPDX-License-Identifier: Apache-2.0
"""The merged ELF: what pyelftools reads back, the cache, and files that are no firmware for the board."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from fvp.virtual import elf, tools
from fvp.virtual.boards import CORSTONE_320, PAGE
from report.errors import EnvironmentError_

BOOT, BRAM = 0x1100_0000, 0x1200_0000
VECTORS = struct.pack("<2I", 0x3000_8000, BRAM + 1)
CODE = bytes.fromhex("fee7")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(tools.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "virtual"


@pytest.fixture
def firmware(tmp_path: Path) -> Path:
    path = tmp_path / "firmware.axf"
    path.write_bytes(elf.merged_elf(BOOT, [(BOOT, VECTORS, PAGE), (BRAM, CODE, PAGE)]))
    return path


def segments(path: Path) -> dict[int, tuple[bytes, int]]:
    file = ELFFile(io.BytesIO(path.read_bytes()))
    return {s["p_vaddr"]: (s.data(), s["p_memsz"]) for s in file.iter_segments("PT_LOAD")}


def test_every_memory_and_page_of_the_board_is_a_segment(firmware: Path) -> None:
    image = elf.prepare(firmware, CORSTONE_320)
    found = segments(image.path)
    assert found[BOOT] == (VECTORS, 128 << 10) and found[BRAM] == (CODE, 2 << 20)
    assert {memory.base: memory.size for memory in CORSTONE_320.memories}.items() <= {
        base: size for base, (_, size) in found.items()
    }.items()
    assert found[0x5031_0000][0][:4] == struct.pack("<I", 0x1CDC_0000)
    assert found[CORSTONE_320.staging] == (b"", PAGE)
    entry = ELFFile(io.BytesIO(image.path.read_bytes()))["e_entry"]
    assert entry == BRAM + 1 and image.vectors == BOOT


def test_segments_are_page_aligned_and_the_file_is_executable(firmware: Path) -> None:
    path = elf.prepare(firmware, CORSTONE_320).path
    file = ELFFile(io.BytesIO(path.read_bytes()))
    assert all(s["p_offset"] % PAGE == s["p_vaddr"] % PAGE == 0 for s in file.iter_segments())
    assert os.access(path, os.X_OK)


def test_cache_is_used_and_follows_the_firmware(firmware: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = elf.prepare(firmware, CORSTONE_320)
    firmware.write_bytes(elf.merged_elf(BOOT, [(BOOT, VECTORS, PAGE), (BRAM, CODE * 2, PAGE)]))
    second = elf.prepare(firmware, CORSTONE_320)
    assert second.path != first.path and segments(second.path)[BRAM][0] == CODE * 2
    monkeypatch.setattr(elf, "read_firmware", None)
    assert elf.prepare(firmware, CORSTONE_320) == second


@pytest.mark.parametrize("damage", ["index", "elf", "no elf"])
def test_damaged_cache_is_made_again(firmware: Path, damage: str) -> None:
    image = elf.prepare(firmware, CORSTONE_320)
    good = image.path.read_bytes()
    if damage == "index":
        image.path.with_suffix(".json").write_text("{")
    elif damage == "elf":
        image.path.write_bytes(good[:100])
    else:
        image.path.unlink()
    assert elf.prepare(firmware, CORSTONE_320).path.read_bytes() == good


def test_nothing_half_written_is_left(firmware: Path, cache: Path) -> None:
    elf.prepare(firmware, CORSTONE_320)
    assert sorted(path.suffix for path in cache.iterdir()) == [".elf", ".json"]


def test_cache_folder_that_cannot_be_written(
    firmware: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(tools.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(EnvironmentError_, match="set ARMDEPLOY_CACHE"):
        elf.prepare(firmware, CORSTONE_320)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x7fELF\x01\x01\x01", b"\x7fELF\x01\x01\x01" + bytes(200)]
)
def test_no_elf(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.axf"
    path.write_bytes(content)
    with pytest.raises(EnvironmentError_, match=r"x\.axf is no"):
        elf.prepare(path, CORSTONE_320)


def test_elf_of_another_machine() -> None:
    with pytest.raises(EnvironmentError_, match="is no 32-bit little-endian Arm ELF"):
        elf.prepare(Path("/bin/true"), CORSTONE_320)


def test_firmware_of_another_board(tmp_path: Path) -> None:
    path = tmp_path / "other.axf"
    path.write_bytes(elf.merged_elf(0, [(0, VECTORS, PAGE)]))
    with pytest.raises(
        EnvironmentError_, match="does not fit corstone-320: 8 bytes at 0x00000000 are in none"
    ):
        elf.prepare(path, CORSTONE_320)


def test_addresses_are_described_by_symbol() -> None:
    image = elf.Image(Path(), Path(), "", 0, {"main": 0x1000, "end": 0x2000})
    assert image.describe(0x1000) == "0x00001000 (main)"
    assert image.describe(0x1FFE) == "0x00001ffe (main+0xffe)"
    assert image.describe(0x10) == "0x00000010" and image.describe(0x9000_0000) == "0x90000000"


def test_a_cache_that_is_off_is_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(tools.CACHE_VARIABLE, "off")
    assert tools.cache_dir() == tmp_path / ".cache" / "armdeploy"
    monkeypatch.setenv(tools.CACHE_VARIABLE, str(tmp_path / "elsewhere"))
    assert tools.cache_dir() == tmp_path / "elsewhere"

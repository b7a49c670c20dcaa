# SPDX-License-Identifier: Apache-2.0
"""Linker script, header and checks of every board; footprint; errors of the build."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import board_runs
import pytest
from board_runs import PROGRAMS, ROOT, needs_runner

from fvp.virtual import runner_build
from fvp.virtual.runner_build import RunnerBuild
from npu import registers
from npu.config import Family
from report.errors import CompileError, EnvironmentError_, UsageError

sys.path.insert(0, str(ROOT / "cmake" / "tools"))

import board
import elf_check
import footprint

BOARDS = sorted(path.stem for path in (ROOT / "cmake" / "boards").glob("*.json"))
SIZES = {"file": 0x10000, "method": 0x10000, "temp": 0x10000, "fast": 0}
CODE_LIMIT, RAM_LIMIT = 40 * 1024, 8 * 1024


def _board(name: str) -> board.Board:
    return board.read_board(ROOT / "cmake" / "boards" / f"{name}.json")


# --- generated files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize("memory_mode", board.MEMORY_MODES)
def test_pools_follow_the_memory_mode(name, memory_mode):
    chosen = _board(name)
    pools = {pool.name: pool for pool in board.place_pools(chosen, memory_mode, SIZES)}
    dedicated = memory_mode.startswith("Dedicated")
    assert pools["temp"].memory.name == ("ddr" if dedicated else "sram")
    assert pools["fast"].size == (chosen.memory("scratch").size if dedicated else 0)


@pytest.mark.parametrize("name", BOARDS)
def test_temp_pool_bigger_than_the_sram_goes_to_external_memory(name):
    chosen = _board(name)
    sizes = SIZES | {"temp": chosen.memory("scratch").size + 1}
    pools = {pool.name: pool for pool in board.place_pools(chosen, "Shared_Sram", sizes)}
    assert pools["temp"].memory.name == "ddr"


@pytest.mark.parametrize(
    ("name", "memory_mode", "expected"),
    [("corstone-300", "Shared_Sram", 0x13), ("corstone-320", "Dedicated_Sram_384KB", 0x3DF)],
)
def test_region_attributes(name, memory_mode, expected):
    """Weights, scratch and fast scratch as Arm's own firmware sets them for these boards (0x13, 0x1f)."""
    assert board.region_attributes(_board(name), memory_mode) == expected


def test_unknown_memory_mode_is_refused():
    with pytest.raises(board.BoardError, match="unknown memory mode 'Sram'; known: Sram_Only"):
        board.place_pools(_board("corstone-320"), "Sram", SIZES)


def test_model_address_without_memory_is_refused():
    chosen = _board("corstone-320")
    pools = board.place_pools(chosen, "Sram_Only", SIZES)
    with pytest.raises(board.BoardError, match="no memory at the model's address 0x50000000"):
        board.linker_script(chosen, pools, 0x1000, 0x5000_0000)


def test_damaged_board_file_is_named(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"name": "x"}))
    with pytest.raises(board.BoardError, match=r"x\.json: not a board file"):
        board.read_board(path)


@needs_runner
@pytest.mark.parametrize("name", BOARDS)
def test_an_oversized_pool_does_not_link(name, tmp_path):
    """The linker script itself refuses what does not fit, with the sizes."""
    image = board_runs.npu_only("corstone-320", "Dedicated_Sram_384KB")
    options = ["--memory-mode", "Shared_Sram", "--stack", "0x1000", "--file-pool", "0x10000"]
    options += ["--method-pool", "0x10000000", "--temp-pool", "0x10000", "--fast-pool", "0"]
    with pytest.raises(subprocess.CalledProcessError) as failure:
        board_runs.relink(image, tmp_path, name, *options)
    assert (
        "the method pool of 268435456 bytes does not fit ddr (134217728 bytes)"
        in failure.value.stderr.decode()
    )


def test_registers_are_those_of_the_register_table():
    """runtime/ethosu/registers.h repeats npu/registers.py for C++: same names, same values."""
    text = (ROOT / "runtime/ethosu/registers.h").read_text()
    spaces = dict(re.findall(r"namespace (\w+) \{\n(.*?)\}  // namespace", text, re.DOTALL))
    tables = {"reg": registers.Reg, "status": registers.Status, "cmd": registers.Cmd, "pmcr": registers.Pmcr}
    compared = 0
    for space, table in (tables | {"pmu": registers.Pmu}).items():
        for name, value in re.findall(r"uint32_t (\w+) = ([^;]+);", spaces[space]):
            member = "ENABLE" if space == "pmcr" and name == "ENABLE" else name
            assert eval(value, {}) == int(table[member]), (space, name)  # a literal or a shift of literals
            compared += 1
    for name, value in re.findall(r"uint32_t (\w+) = (\d+);", spaces["event"]):
        for family, ports in ((Family.U55, ("AXI0", "AXI1")), (Family.U85, ("SRAM", "EXT"))):
            expected = name.replace("PORT0", ports[0]).replace("PORT1", ports[1])
            assert registers.EVENTS[family][int(value)] == expected
            compared += 1
    assert compared > 40


# --- images --------------------------------------------------------------------------------------------


@needs_runner
@pytest.mark.parametrize(
    ("name", "memory_mode"),
    [
        ("corstone-300", "Shared_Sram"),
        ("corstone-310", "Shared_Sram"),
        ("corstone-320", "Dedicated_Sram_384KB"),
    ],
)
def test_npu_only_image_is_small_and_right_for_its_board(name, memory_mode, capsys):
    image = board_runs.npu_only(name, memory_mode)
    options = [str(image), "--board", str(ROOT / f"cmake/boards/{name}.json"), "--map", f"{image}.map"]
    limits = ["--limit-code", str(CODE_LIMIT), "--limit-ram", str(RAM_LIMIT)]
    status = elf_check.main([*options, *limits])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert {"core", "ethosu", "platform", "runner"} <= {line.split()[0] for line in printed.out.splitlines()}
    assert re.search(r"^code and constants \(without a program\): \d+ bytes$", printed.out, re.MULTILINE)
    assert re.search(r"^RAM \(data and stack, without pools\): \d+ bytes$", printed.out, re.MULTILINE)


@needs_runner
def test_limits_are_reported(capsys):
    image = board_runs.npu_only("corstone-320", "Dedicated_Sram_384KB")
    options = [str(image), "--board", str(ROOT / "cmake/boards/corstone-320.json")]
    assert elf_check.main([*options, "--limit-code", "1000", "--limit-ram", "100"]) == 6
    errors = capsys.readouterr().err
    assert re.search(r"code and constants: \d+ bytes, \d+ over the limit of 1000", errors)
    assert re.search(r"RAM: \d+ bytes, \d+ over the limit of 100", errors)


@needs_runner
def test_image_for_another_board_is_refused(capsys):
    image = board_runs.npu_only("corstone-320", "Dedicated_Sram_384KB")
    assert elf_check.main([str(image), "--board", str(ROOT / "cmake/boards/corstone-300.json")]) == 4
    errors = capsys.readouterr().err
    assert "the vector table is at 0x11000000, the CPU starts at 0x00000000" in errors
    assert re.search(r"\.text: \d+ bytes at 0x12000000 are in no memory of corstone-300", errors)


def test_file_that_is_no_elf(tmp_path, capsys):
    path = tmp_path / "x"
    path.write_text("no ELF")
    assert elf_check.main([str(path), "--board", str(ROOT / "cmake/boards/corstone-320.json")]) == 3
    assert "not a firmware of this build" in capsys.readouterr().err


def _section(name: str, address: int, size: int, writable: bool = False) -> elf_check.Section:
    return elf_check.Section(name, address, address, size, writable, not writable)


def _firmware(**changes) -> elf_check.Firmware:
    vectors = (0x3000_8000).to_bytes(4, "little") + (0x1200_0101).to_bytes(4, "little")
    values = {
        "sections": (_section(".vectors", 0x1100_0000, 8), _section(".text", 0x1200_0000, 0x1000)),
        "symbols": {"__stack_top": 0x3000_8000, "__stack_limit": 0x3000_7000, "__bss_end": 0x3000_0100},
        "vectors": vectors,
        "entry": 0x1200_0100,
    }
    return elf_check.Firmware(**(values | changes))


@pytest.mark.parametrize(
    ("check", "changes", "message"),
    [
        ("check_vectors", {"vectors": b""}, "no vector table"),
        ("check_vectors", {"entry": 0x1200_0200}, "is not the entry point"),
        (
            "check_vectors",
            {"vectors": (0x3000_8004).to_bytes(4, "little") + (0x1200_0101).to_bytes(4, "little")},
            "is not an aligned end of a memory",
        ),
        ("check_places", {"sections": (_section(".text", 0x1220_0000 - 8, 16),)}, "are in no memory"),
    ],
)
def test_checks_of_an_image(check, changes, message):
    chosen = _board("corstone-320")
    assert list(getattr(elf_check, check)(_firmware(), chosen)) == []
    found = list(getattr(elf_check, check)(_firmware(**changes), chosen))
    assert len(found) >= 1 and any(message in line for line in found)


def test_heap_and_stack_checks():
    symbols = {
        "__stack_top": 0x3000_8000,
        "__stack_limit": 0x3000_7004,
        "__bss_end": 0x3000_7100,
        "malloc": 1,
    }
    firmware = _firmware(symbols=symbols)
    assert list(elf_check.check_heap(firmware, [])) == [
        "malloc is linked in: something uses a heap or exceptions"
    ]
    assert list(elf_check.check_heap(firmware, ["malloc"])) == []
    assert len(list(elf_check.check_stack(firmware))) == 2


def test_footprint_leaves_out_what_was_discarded():
    lines = [
        " .text.gone      0x00000000       0x10 a/runtime/core/x.cpp.obj",
        "Linker script and memory map",
        " .text.kept      0x12000000       0x20 a/runtime/core/x.cpp.obj",
        " .text.a_very_long_name_of_a_function",
        "                0x12000020        0x8 a/runtime/kernels/y.cpp.obj",
        " .bss            0x30000000        0x4 /usr/lib/libc_nano.a(z.o)",
    ]
    table = footprint.by_component(lines)
    assert {name: (row["code"], row["bss"]) for name, row in table.items()} == {
        "core": (0x20, 0),
        "kernels": (8, 0),
        "C library": (0, 4),
    }


# --- errors of the build -------------------------------------------------------------------------------


def test_unknown_board():
    with pytest.raises(UsageError, match="unknown board 'corstone-999'"):
        runner_build.build(RunnerBuild("corstone-999", "Sram_Only"))


def test_missing_tools_name_their_packages(monkeypatch):
    monkeypatch.setattr(runner_build.shutil, "which", lambda program: None if program == "flatc" else "/x")
    with pytest.raises(EnvironmentError_, match="apt-get install flatbuffers-compiler") as failure:
        runner_build.build(RunnerBuild("corstone-320", "Sram_Only"))
    assert failure.value.exit_code == 3


@needs_runner
def test_pools_that_do_not_fit_are_a_compile_error():
    options = {"ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE": "0x10000000"}
    request = RunnerBuild(
        "corstone-320", "Dedicated_Sram_384KB", (PROGRAMS / "two_u85_256.pte",), options=options
    )
    with pytest.raises(CompileError, match="the method pool of 268435456 bytes does not fit ddr"):
        runner_build.build(request)


@needs_runner
def test_unknown_memory_mode_ends_the_build():
    with pytest.raises(UsageError, match="unknown memory mode 'Nowhere'; known: Sram_Only, Shared_Sram"):
        runner_build.build(RunnerBuild("corstone-320", "Nowhere"))


def test_scratch_that_the_sram_cannot_hold_goes_to_external_memory():
    mib = 1 << 20
    pool = "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE"
    assert runner_build.for_family(Family.U55, None, mib).options == {}
    assert runner_build.for_family(Family.U55, None, 2 * mib).options == {pool: hex(64 * mib)}
    assert runner_build.for_family(Family.U85, "Sram_Only", 2 * mib).options == {}
    assert runner_build.for_family(Family.U85, "Dedicated_Sram", 32 * mib).options == {}


def test_scratch_of_a_program_is_its_biggest_delegate():
    program = (PROGRAMS / "split_u55_128.pte").read_bytes()
    blocks = [match.end() for match in re.finditer(rb"scratch_size\x00{4}\x04\x00{15}", program)]
    sizes = [int.from_bytes(program[start : start + 4], "little") for start in blocks]
    assert len(sizes) == 2 and sizes[0] != sizes[1]
    assert runner_build.scratch_bytes(program) == max(sizes)

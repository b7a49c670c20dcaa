# SPDX-License-Identifier: Apache-2.0
"""Formatting, arenas and tensors of the core, as core_units.cpp prints them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("arena", "error", "format", "tensor")
ARGUMENTS = {
    "%d": (-(2**31),),
    "%5d|%-5d|%05d": (42, 42, -42),
    "%lld": (-(2**63),),
    "%llu": (2**64 - 1,),
    "%08x": (0xBEEF,),
    "%zu": (2**64 - 1,),
    "%s|%6s|%-6s|%.2s": ("abc",) * 4,
    "%c%%": ("x",),
    "%f": (3.14159265,),
    "%8.2f|%-8.2f|%08.2f": (3.14159, 3.14159, -3.14159),
    "%*d|%.*s": (6, 7, 2, "xyz"),
}
"""What core_units.cpp formats where Python's % does the same."""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    program = tmp_path_factory.mktemp("core_units") / "core_units"
    sources = [ROOT / "tests/runtime/core_units.cpp", *(ROOT / f"runtime/core/{part}.cpp" for part in PARTS)]
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror"]
    command = ["g++", "-std=c++17", *checks, "-Wno-format-security", f"-I{ROOT}", "-o", program, *sources]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()


def _formatted(lines: list[str]) -> dict[str, tuple[str, int]]:
    rows = [line.split("\t") for line in lines if line.startswith("format\t")]
    return {form: (text, int(length)) for _, form, text, length in rows}


def test_formats_as_printf_does(lines: list[str]) -> None:
    for form, arguments in ARGUMENTS.items():
        expected = form.replace("lld", "d").replace("llu", "d").replace("zu", "d") % arguments
        assert _formatted(lines)[form] == (expected, len(expected))


def test_halves_round_up_and_a_long_text_is_cut(lines: list[str]) -> None:
    assert _formatted(lines)["%.0f|%.1f|%.3f"] == ("3|-0.1|2000.000", 15)
    text = "a text that is longer than the sixty-three characters there is room for"
    assert (text[:63], 63) in _formatted(lines).values()


def test_an_arena_aligns_releases_and_explains_what_does_not_fit(lines: list[str]) -> None:
    arena = [line for line in lines if line.startswith(("arena ", "log small"))]
    assert arena == [
        "arena 16 20 32 81 23 81",
        "log small memory: requested 69, available 68, missing 1 bytes (size 99)",
        "arena -1",
        "arena 32",
        f"log small memory: requested {2**64 - 1}, available 0, missing {2**64 - 1} bytes (size 99)",
        "arena -1",
    ]


def test_a_tensor_knows_its_strides_and_bounds(lines: list[str]) -> None:
    like = torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last)
    strides = " ".join(map(str, like.stride()))
    assert f"tensor {like.numel()} {like.nbytes} 0 strides {strides}" in lines
    assert [line for line in lines if line.startswith("resize ")] == [
        "resize 1 Ok 240",
        "resize 3 NotSupported 240",
        "resize -1 NotSupported 240",
        f"resize {2**31 - 1} NotSupported 240",
    ]


def test_errors_have_names(lines: list[str]) -> None:
    assert "error InvalidProgram unknown error" in lines

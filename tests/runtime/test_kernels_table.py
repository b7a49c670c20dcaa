# SPDX-License-Identifier: Apache-2.0
"""The table of kernels and the selective build."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from kernel_host import ROOT, Out, ProgramBuilder

TOOL = ROOT / "cmake" / "tools" / "select_kernels.py"
TABLE = ROOT / "runtime" / "kernels" / "kernels.json"


def select(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *map(str, arguments)], capture_output=True, text=True)


def program(path: Path, *operators: str) -> Path:
    builder = ProgramBuilder()
    for operator in operators:
        builder.call(operator, torch.zeros(2), Out((2,), torch.float32))
    path.write_bytes(builder.build())
    return path


def registered(source: str) -> list[str]:
    return re.findall(r'\{"([^"]+)", kernels::\w+\}', source)


def test_only_the_operators_of_the_programs(tmp_path: Path) -> None:
    first = program(tmp_path / "a.pte", "aten::exp.out", "aten::abs.out")
    second = program(tmp_path / "b.pte", "aten::abs.out", "aten::clone.out")
    out, sources = tmp_path / "registration.cpp", tmp_path / "kernels.cmake"
    done = select("--pte", first, second, "--output", out, "--sources-output", sources)
    assert done.returncode == 0, done.stderr
    assert registered(out.read_text()) == ["aten::abs.out", "aten::clone.out", "aten::exp.out"]
    assert "kKernelCount = 3;" in out.read_text()
    assert "unary.cpp" in sources.read_text()
    assert "copy.cpp" in sources.read_text()
    assert "quantize.cpp" not in sources.read_text()


def test_operators_by_name(tmp_path: Path) -> None:
    out = tmp_path / "registration.cpp"
    assert select("--operators", "aten::exp.out,aten::abs.out", "--output", out).returncode == 0
    assert registered(out.read_text()) == ["aten::abs.out", "aten::exp.out"]


def test_operators_that_nobody_provides_are_named_together(tmp_path: Path) -> None:
    path = program(tmp_path / "a.pte", "aten::abs.out", "aten::nobody.out", "mine::special.out")
    done = select("--pte", path, "--output", tmp_path / "registration.cpp")
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    for part in (
        "a.pte",
        "aten::nobody.out, mine::special.out",
        "portable",
        "custom kernel library for mine::",
    ):
        assert part in done.stderr
    assert not (tmp_path / "registration.cpp").exists()


def test_a_program_without_kernels_needs_no_source(tmp_path: Path) -> None:
    path = program(tmp_path / "a.pte")
    out, sources = tmp_path / "registration.cpp", tmp_path / "kernels.cmake"
    assert select("--pte", path, "--output", out, "--sources-output", sources).returncode == 0
    assert "kKernelCount = 0;" in out.read_text()
    assert "set(KERNEL_SOURCES)" in sources.read_text()


def test_an_unchanged_output_is_not_written_again(tmp_path: Path) -> None:
    path, out = program(tmp_path / "a.pte", "aten::abs.out"), tmp_path / "registration.cpp"
    select("--pte", path, "--output", out)
    before = out.stat().st_mtime_ns
    select("--pte", path, "--output", out)
    assert out.stat().st_mtime_ns == before


@pytest.mark.parametrize("arguments", [(), ("--all", "--pte", "x.pte")])
def test_either_programs_or_everything(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = select(*arguments, "--output", tmp_path / "r.cpp")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_damaged_program_or_table_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "bad.pte").write_bytes(b"no program at all")
    (tmp_path / "bad.json").write_text('{"kernels": 3}')
    for arguments in (("--pte", tmp_path / "bad.pte"), ("--all", "--table", tmp_path / "bad.json")):
        done = select(*arguments, "--output", tmp_path / "r.cpp")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_every_kernel_of_the_sources_is_in_the_table() -> None:
    """A function that is defined and not listed could never be linked in."""
    table = json.loads(TABLE.read_text())
    listed = {re.sub(r"\W+", "_", operator) for group in table["kernels"] for operator in group["operators"]}
    namespaces = "|".join(table["namespaces"])
    defined = set()
    for source in TABLE.parent.glob("*.cpp"):
        defined |= set(
            re.findall(rf"^(?:Error |KERNEL\()((?:{namespaces})_\w+)", source.read_text(), re.MULTILINE)
        )
    assert defined - listed == set()


def test_all_sources_are_in_the_table() -> None:
    table = json.loads(TABLE.read_text())
    listed = {group["source"] for group in table["kernels"]} | set(table["common"])
    assert listed == {path.name for path in TABLE.parent.glob("*.cpp")}

# SPDX-License-Identifier: Apache-2.0
"""No file makes the runtime read or write outside its buffers or hang: under AddressSanitizer and UBSan.

corpus/fuzzed.zip holds files that libFuzzer made of the programs of core_programs with
runtime/host/fuzz_pte.cpp; every one of them reaches code that no other does.
"""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import core_programs
import pytest
from core_damage import DAMAGES
from core_host import build, case, executorch_outputs

CORPUS = Path(__file__).resolve().parent / "corpus" / "fuzzed.zip"
DATA = Path(__file__).resolve().parents[1] / "data"
SECONDS = 300


def _fuzz(*arguments: str | Path) -> str:
    command = [str(build() / "fuzz_pte"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_the_corpus_of_corrupt_files(tmp_path: Path) -> None:
    assert CORPUS.stat().st_size < 300 << 10
    with zipfile.ZipFile(CORPUS) as archive:
        archive.extractall(tmp_path)
    files = sorted(tmp_path.iterdir())
    assert len(files) >= 500
    assert f"{len(files)} files ran" in _fuzz(*files)


def test_damaged_programs_and_programs_for_the_npu(tmp_path: Path) -> None:
    files = sorted(DATA.glob("*.pte"))
    for name, damage in DAMAGES.items():
        files.append(tmp_path / name)
        files[-1].write_bytes(damage.pte())
    assert f"{len(files)} files ran" in _fuzz(*files)


@pytest.mark.parametrize("name", ["condition", "delegate", "dynamic", "every_kind", "mutable"])
def test_every_byte_flipped_one_at_a_time(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.pte"
    path.write_bytes(case(name).pte)
    assert "1 files ran" in _fuzz("--flip", path)


def test_every_byte_of_a_bundle_flipped_one_at_a_time(tmp_path: Path) -> None:
    chosen = case("add")
    (outputs,) = executorch_outputs(chosen)
    path = tmp_path / "add.bpte"
    tensor = core_programs.tensor_of(outputs[0], (2, 3))
    path.write_bytes(core_programs.bundled(chosen, [(tensor,)]))
    assert "1 files ran" in _fuzz("--flip", path)


def test_the_sanitiser_is_there() -> None:
    symbols = subprocess.run(["nm", str(build() / "fuzz_pte")], capture_output=True, text=True, check=True)
    assert "__asan_report_load1" in symbols.stdout
    assert "__ubsan_handle" in symbols.stdout

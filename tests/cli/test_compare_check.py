# SPDX-License-Identifier: Apache-2.0
"""``armdeploy compare`` and ``check``: records of real runs, several targets of a model, exit codes."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from aot import compile as aot_compile
from armdeploy.main import main
from fvp.virtual.run import VirtualCorstone
from report.errors import CompileError, UsageError

DATA = Path(__file__).parents[1] / "data"
PROGRAMS = {"ethos-u55-128": "ds_cnn_u55_128.pte", "ethos-u85-256": "ds_cnn_u85_256.pte"}

needs_board = pytest.mark.skipif(
    VirtualCorstone.available() is not None, reason=str(VirtualCorstone.available())
)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of both programs, on the virtual board; without a compile report a program's name is its model's."""
    folder = tmp_path_factory.mktemp("records")
    paths = []
    for target, program in PROGRAMS.items():
        with pytest.MonkeyPatch.context() as patch:
            printed: list[str] = []
            patch.setattr("builtins.print", lambda *words, **_: printed.append(" ".join(map(str, words))))  # noqa: B023
            (folder / target).mkdir()
            copy = shutil.copy(DATA / program, folder / target / "ds_cnn.pte")
            assert main(["run", "--pte", str(copy), "--json", "-o", str(folder)]) == 0
        paths.append(folder / f"{target}.json")
        paths[-1].write_text(next(text for text in printed if text.startswith("{")))
    return paths


@needs_board
def test_records_side_by_side(records: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    page = tmp_path / "new" / "c.html"
    assert main(["compare", *map(str, records), "--json", "--html", str(page)]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert str(page) in captured.err and page.read_text().startswith("<!doctype html>")
    assert [run["target"] for run in found["runs"]] == list(PROGRAMS)
    counted = [json.loads(path.read_text()) for path in records]
    cycles = [next(m["value"] for m in c["metrics"] if m["name"] == "npu_active") for c in counted]
    (group,) = [each for each in found["comparisons"] if each["counter"] == "npu_active"]
    assert [row["value"] for row in group["rows"]] == cycles
    assert group["rows"][1]["ratio"] == cycles[1] / cycles[0]


@needs_board
def test_a_record_has_the_operations_of_its_run(records: list[Path]) -> None:
    for path in records:
        record = json.loads(path.read_text())
        (network,) = record["profile"]["npu"]["networks"]
        (active,) = [metric for metric in record["metrics"] if metric["name"] == "npu_active"]
        assert sum(operation["cycles"] for operation in network["operations"]) == active["value"]


@needs_board
def test_a_clock_is_of_a_target(records: list[Path], capsys: pytest.CaptureFixture) -> None:
    assert main(["compare", *map(str, records), "--clock", "ethos-u99=500"]) == 2
    assert "no run on 'ethos-u99'; targets: ethos-u55-128, ethos-u85-256" in capsys.readouterr().err
    assert main(["compare", *map(str, records), "--clock", "1e-320"]) == 2
    assert "a clock is at least 0.001 MHz" in capsys.readouterr().err


@needs_board
def test_one_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    asked: list[list[str]] = []

    def compile_models(arguments: argparse.Namespace) -> Iterator[tuple[Path, dict]]:
        asked.append(arguments.target)
        for target in arguments.target:
            if target not in PROGRAMS:
                raise CompileError("does not fit", where="vela")
            program = tmp_path / PROGRAMS[target]
            program.write_bytes((DATA / PROGRAMS[target]).read_bytes())
            yield program, {}

    monkeypatch.setattr(aot_compile, "compile_models", compile_models)
    targets = "ethos-u55-128,ethos-u55-32,ethos-u85-256"
    assert main(["compare", "-m", "ds_cnn", "-t", targets, "-o", str(tmp_path), "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert [run["target"] for run in found["runs"]] == targets.split(",")
    assert [run["failed"] for run in found["runs"]] == [False, True, False]
    assert found["runs"][1]["output"] == "vela: does not fit"
    assert asked == [targets.split(","), ["ethos-u85-256"]]
    outputs = [json.loads(path.read_text())["outputs"][0]["path"] for path in tmp_path.glob("*.record.json")]
    assert len(set(outputs)) == 2 and all(Path(path).is_file() for path in outputs)
    kept = [json.loads((tmp_path / f"{Path(p).stem}.record.json").read_text()) for p in PROGRAMS.values()]
    assert [record["status"] for record in kept] == ["ok", "ok"]


def test_options_that_one_target_refuses_are_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Each target is asked alone; nothing but such refusals is one line."""

    def compile_models(arguments: argparse.Namespace) -> Iterator[tuple[Path, dict]]:
        if "ethos-u85-256" in arguments.target:
            raise UsageError("no such mode", where="--memory_mode")
        raise CompileError("does not fit", where="vela")
        yield

    monkeypatch.setattr(aot_compile, "compile_models", compile_models)
    assert main(["compare", "-t", "ethos-u55-128,ethos-u85-256", "-o", str(tmp_path), "--json"]) == 4
    found = json.loads(capsys.readouterr().out)["runs"]
    assert [run["output"] for run in found] == ["vela: does not fit", "--memory_mode: no such mode"]
    assert main(["compare", "-t", "ethos-u85-256", "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "armdeploy: error: --memory_mode: no such mode\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["r.json", "-m", "ds_cnn"], "--model means nothing beside records"),
        (["r.json", "--seed", "4"], "--seed means nothing beside records"),
        (["-t", ","], "--target: no target"),
        (["-m", "nothing"], "nothing"),
        (["--clock", "ethos-u85-128=5"], "no run on 'ethos-u85-128'; targets: ethos-u55-128, ethos-u65-256"),
        (["r.json"], "r.json: cannot read the record"),
        (["r.json", "--clock", "soon"], "--clock: 'soon' is not MHZ or TARGET=MHZ"),
        (["-t", "ethos-u57"], "unknown target 'ethos-u57'"),
        (["-t", "ethos-u55-128,cortex-b"], "unknown target 'cortex-b'"),
    ],
)
def test_wrong_words_are_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["compare", *words]) == 2
    assert message in capsys.readouterr().err


@needs_board
def test_gates_on_a_run(records: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path, report = str(records[0]), tmp_path / "junit.xml"
    assert main(["check", path, "--baseline", path, "--max", "npu_active=1e9"]) == 0
    assert main(["check", path, "--max", "npu_active=5", "--junit", str(report), "--json"]) == 6
    captured = capsys.readouterr()
    assert not json.loads(captured.out[captured.out.index("{") :])["passed"]
    assert "1 of 2 gates failed: npu_active" in captured.err
    assert "<failure>" in report.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["r.json"], "nothing to check"),
        (["r.json", "--max", "5"], "--max: '5' is not NAME=VALUE"),
        (["r.json", "--max", "npu_active=5"], "r.json: cannot read the record"),
    ],
)
def test_wrong_gates_are_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["check", *words]) == 2
    assert message in capsys.readouterr().err

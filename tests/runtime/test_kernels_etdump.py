# SPDX-License-Identifier: Apache-2.0
"""The ETDump of a run, read by executorch.devtools: its events are the program's instructions."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from kernel_data import values
from kernel_host import ENVIRONMENT, ROOT, Out, ProgramBuilder, build

from report import pte

WORDS = {pte.MoveCall: "MOVE_CALL", pte.JumpFalseCall: "JF_CALL", pte.FreeCall: "FREE_CALL"}


def record(program: Path, *options: object, inferences: int = 1, room: int = 1 << 16) -> tuple[Path, str]:
    """The dump of `inferences` runs on zeros, and what the recorder said."""
    out = program.with_suffix(".etdp")
    command = [
        str(build() / "etdump_host"),
        str(program),
        str(out),
        str(inferences),
        str(room),
        *map(str, options),
    ]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def inspect(dump: Path, **options: Any) -> Any:
    from executorch.devtools import Inspector

    return Inspector(etdump_path=str(dump), **options)


def raw_runs(dump: Path) -> Any:
    from executorch.devtools.etdump.serialize import deserialize_from_etdump_flatcc

    return deserialize_from_etdump_flatcc(dump.read_bytes()).run_data


def expected_events(instructions: Iterable[pte.Instruction], backends: list[str]) -> list[tuple[str, int]]:
    """Name and instruction of each event of one inference, in the order in which they end."""
    events = []
    for index, i in enumerate(instructions):
        if isinstance(i, pte.KernelCall):
            events += [(f"native_call_{i.operator.partition('::')[2]}", index), ("OPERATOR_CALL", index)]
        elif isinstance(i, pte.DelegateCall):
            events += [(f"{backends[i.delegate]}::execute()", index), ("DELEGATE_CALL", index)]
        else:
            events.append((WORDS[type(i)], index))
    return [*events, ("Method::execute", -1)]


def found_events(block: Any) -> list[tuple[str, int]]:
    return [(e.name, -1 if e._instruction_id is None else e._instruction_id) for e in block.events]


@pytest.fixture
def three_calls(tmp_path: Path) -> Path:
    x, out = values(torch.float32, (3, 4)), Out((3, 4), torch.float32)
    builder = ProgramBuilder()
    builder.call("aten::add.out", x, x, 1, out)
    builder.call("aten::mul.out", x, x, out)
    builder.call("aten::add.out", x, x, 2, out)
    path = tmp_path / "three.pte"
    path.write_bytes(builder.build())
    return path


@pytest.mark.parametrize("name", ["mixed_u85_256", "mixed_u55_128", "layouts_u85_256", "layouts_u55_128"])
def test_events_are_the_instructions(name: str, tmp_path: Path) -> None:
    program = tmp_path / f"{name}.pte"
    program.write_bytes((ROOT / "tests/data/fvp" / program.name).read_bytes())
    method = pte.load(program).method()
    backends = [d.backend for d in method.delegates]
    dump, said = record(program)
    load, execute = inspect(dump).event_blocks
    assert said.endswith("dropped 0\n")
    assert (load.name, execute.name) == ("Default", "Execute")
    assert [e.name for e in load.events] == ["BackendDelegate::Init", "Method::init"]  # equal ones are one
    assert [len(run.events) for run in raw_runs(dump)] == [len(backends) + 1, len(execute.events)]
    assert found_events(execute) == expected_events(method.instructions, backends)
    delegated = [e for e in execute.events if e.is_delegated_op]
    assert [e.delegate_debug_identifier for e in delegated] == [f"{b}::execute()" for b in backends]


def test_inferences_are_runs_of_one_block(three_calls: Path) -> None:
    dump, _ = record(three_calls, inferences=3)
    execute = inspect(dump).event_blocks[1]
    assert all(len(e.perf_data.raw) == 3 for e in execute.events)
    whole = execute.events[-1].perf_data.raw
    parts = [e.perf_data.raw for e in execute.events if e.name == "OPERATOR_CALL"]
    assert all(sum(p[k] for p in parts) < whole[k] for k in range(3))


def test_with_the_record_of_the_export(tmp_path: Path) -> None:
    """The ETRecord names each call's operator; the first converts the scalar that is added."""
    from executorch.devtools import generate_etrecord
    from executorch.exir import to_edge

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(x + 1) * x

    edge = to_edge(torch.export.export(Model(), (torch.ones(2, 3),)))
    etrecord = tmp_path / "record.bin"
    program = edge.to_executorch()
    generate_etrecord(str(etrecord), edge, program)
    path = tmp_path / "model.pte"
    path.write_bytes(program.buffer)
    dump, _ = record(path)
    execute = inspect(dump, etrecord=str(etrecord)).event_blocks[1]
    calls = [e for e in execute.events if e.name == "OPERATOR_CALL"]
    assert [e.op_types for e in calls] == [["add.out"], ["add.out"], ["sigmoid.out"], ["mul.out"]]


def test_what_does_not_fit_is_counted(three_calls: Path) -> None:
    dump, said = record(three_calls, room=5 * 32)
    counts = re.fullmatch(r"recorded (\d+) dropped (\d+)\n", said)
    assert counts is not None
    assert int(counts[1]) + int(counts[2]) == 5  # load, three calls, the method
    assert 0 < int(counts[1]) < 5
    assert sum(len(b.events) for b in inspect(dump).event_blocks) > 0


def test_base64_on_a_console_is_the_same_dump(three_calls: Path) -> None:
    plain = record(three_calls)[0].read_bytes()
    lines = record(three_calls, "base64")[0].read_text().splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("#[RUN THIS]", "# Writing etdump.bin [base64]", "#[END]")
    text = re.fullmatch(r'echo "([A-Za-z0-9+/=]*)" \| base64 -d >etdump.bin', lines[2])
    assert text is not None
    assert base64.b64decode(text[1], validate=True) == plain

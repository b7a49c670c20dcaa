# SPDX-License-Identifier: Apache-2.0
"""The .pte reader against ExecuTorch's own reader, and against damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report import pte
from report.errors import UsageError

PROGRAM = Path(__file__).parents[1] / "data" / "two_conv_u85_256.pte"


@pytest.fixture(scope="module")
def program() -> pte.Program:
    return pte.load(PROGRAM)


def test_everything_is_as_executorch_reads_it(program: pte.Program) -> None:
    from executorch.exir._serialize._program import deserialize_pte_binary

    theirs = deserialize_pte_binary(PROGRAM.read_bytes()).program
    (plan,), ours = theirs.execution_plan, program.method()
    assert ours.name == plan.name
    assert (list(ours.inputs), list(ours.outputs)) == (plan.inputs, plan.outputs)
    assert list(ours.planned_bytes) == plan.non_const_buffer_sizes
    assert len(ours.values) == len(plan.values)
    for index, value in enumerate(ours.values):
        if isinstance(value, pte.TensorMeta):
            tensor = plan.values[index].val
            assert list(value.shape) == tensor.sizes and list(value.dim_order) == tensor.dim_order
            assert value.memory_offset == tensor.allocation_info.memory_offset
        elif isinstance(value, float):
            assert value == plan.values[index].val.double_val
    calls = [i.instr_args for i in plan.chains[0].instructions]
    assert [list(i.args) for i in ours.instructions] == [c.args for c in calls]
    (blob,) = [theirs.backend_delegate_data[d.processed.index].data for d in plan.delegates]
    assert ours.delegates[0].blob == bytes(blob)


def test_a_bundled_program_gives_the_same_program(program: pte.Program, tmp_path: Path) -> None:
    from executorch.devtools.bundled_program import schema
    from executorch.devtools.bundled_program.serialize import _bundled_program_schema_to_flatbuffer as write

    bundled = schema.BundledProgram(version=1, method_test_suites=[], program=PROGRAM.read_bytes())
    path = tmp_path / "m.bpte"
    path.write_bytes(write(bundled))
    assert pte.load(path) == program


@pytest.mark.parametrize("content", [b"", bytes(64), b"not a program at all", PROGRAM.read_bytes()[:100]])
def test_what_is_no_program_is_a_usage_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.pte"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"m\.pte"):
        pte.load(path)


def test_a_missing_file_and_a_missing_method_are_usage_errors(program: pte.Program, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        pte.load(tmp_path / "absent.pte")
    with pytest.raises(UsageError, match="has forward"):
        program.method("backward")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_never_escapes_as_another_exception(data: st.DataObject) -> None:
    content = bytearray(PROGRAM.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, 4000))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    try:
        pte.parse(bytes(content[: cut if data.draw(st.booleans()) else None]))
    except pte.PteError as error:
        assert "\n" not in error.one_line()

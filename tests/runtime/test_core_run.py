# SPDX-License-Identifier: Apache-2.0
"""The runtime core executes ExecuTorch's programs as ExecuTorch's runtime does."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import core_programs
import pytest
import torch
from core_host import CANNOT_LOAD, FAILED, OK, Run, bytes_of, case, executorch_outputs, run, run_case
from executorch.exir import to_edge

from report import pte

EVERY = sorted(core_programs.PROGRAMS | core_programs.HAND_MADE)
DELEGATED = ("delegate", "inline_delegate")
SAME_AS_EXECUTORCH = [name for name in EVERY if name not in DELEGATED]


@pytest.mark.parametrize("name", SAME_AS_EXECUTORCH)
def test_outputs_are_executorchs(name: str) -> None:
    result = run_case(name)
    assert result.status == OK, result.stderr
    assert [result.outputs] == executorch_outputs(case(name))


@pytest.mark.parametrize("name", DELEGATED)
def test_a_delegate_gets_blob_specs_named_data_and_its_arguments(name: str) -> None:
    chosen = case(name)
    a, b = chosen.inputs
    added = sum(core_programs.BLOB) + 5 + 6 + sum(core_programs.NAMED)
    pairs = zip(bytes_of(a), bytes_of(a * b), strict=True)  # the delegate's inputs; see core_backends.cpp
    expected = bytes((x + y + added) % 256 for x, y in pairs)
    result = run_case(name)
    assert result.status == OK, result.stderr
    assert result.outputs == (expected,)


@pytest.mark.parametrize("name", [n for n in EVERY if n not in ("mutable", "loop")])
def test_five_inferences_give_the_same_and_take_no_more_memory(name: str) -> None:
    once, again = run_case(name), run_case(name, "--num-inferences", "5")
    assert again.status == OK, again.stderr
    assert again.outputs == once.outputs
    assert again.stdout == once.stdout  # the shapes and every memory's use


def test_a_mutable_buffer_keeps_its_state_between_inferences() -> None:
    expected = executorch_outputs(case("mutable"), times=3)
    assert len(set(expected)) == 3
    for count, outputs in enumerate(expected, start=1):
        assert run_case("mutable", "--num-inferences", str(count)).outputs == outputs


@pytest.mark.parametrize("method", ["first", "second", "third"])
def test_each_method_of_a_program_runs(method: str) -> None:
    inputs = {"first": (torch.ones(2),), "second": case("methods").inputs, "third": case("constants").inputs}[
        method
    ]
    chosen = core_programs.Case(case("methods").pte, inputs, method)
    result = run(chosen.pte, inputs, "--method", method)
    assert [result.outputs] == executorch_outputs(chosen)


def test_smaller_and_largest_shapes_of_a_bounded_dynamic_program() -> None:
    for batch in (1, 6):
        inputs = (core_programs.ramp(batch, 3), core_programs.ramp(batch, 3) - 4)
        chosen = core_programs.Case(case("dynamic").pte, inputs)
        assert [run(chosen.pte, inputs).outputs] == executorch_outputs(chosen)


def test_a_shape_past_the_bound_is_refused_and_named() -> None:
    inputs = (core_programs.ramp(7, 3), core_programs.ramp(7, 3))
    result = run(case("dynamic").pte, inputs)
    assert (result.status, result.error) == (FAILED, 0x10)
    assert "dimension 0 from 6 to 7 needs more than the tensor's 72 bytes" in result.stderr


def _instructions(data: bytes) -> tuple[pte.Instruction, ...]:
    with tempfile.NamedTemporaryFile(suffix=".pte") as file:
        Path(file.name).write_bytes(data)
        return pte.load(Path(file.name)).methods[0].instructions


def test_events_are_the_programs_instructions() -> None:
    stdout = run_case("view", "--events").stdout
    calls = [i for i in _instructions(case("view").pte) if isinstance(i, pte.KernelCall)]
    seen = re.findall(r"^event 3 (begin|end) 0:(\d+) (\S+)$", stdout, re.MULTILINE)
    assert seen == [
        (phase, str(k), call.operator) for k, call in enumerate(calls) for phase in ("begin", "end")
    ]


def test_a_bundled_program_is_compared_with_its_expected_outputs() -> None:
    chosen = case("add")
    (outputs,) = executorch_outputs(chosen)
    right = core_programs.tensor_of(outputs[0], (2, 3))
    wrong = right.clone()
    wrong[1, 2] += 1
    good = run(core_programs.bundled(chosen, [(right,)]))
    assert (good.status, "Test_result: PASS" in good.stdout) == (OK, True), good.stderr
    bad = run(core_programs.bundled(chosen, [(right,), (wrong,)]))
    assert (bad.status, "Test_result: FAIL" in bad.stdout) == (FAILED, True)
    assert "case 1: 1 of 6 elements differ, at most by 1" in bad.stdout


def test_inputs_of_another_type_in_a_bundle_are_refused() -> None:
    chosen = core_programs.Case(case("add").pte, (torch.ones(2, 3, dtype=torch.int32), torch.ones(2, 3)))
    result = run(core_programs.bundled(chosen, [(torch.ones(2, 3),)]))
    assert (result.status, result.error) == (FAILED, 0x12)


def _pools(result: Run) -> dict[str, int]:
    used = {
        "--method-pool": result.used("method_allocator_used"),
        "--temp-pool": result.used("temp_allocator_peak"),
    }
    planned = re.findall(r"^planned_memory_\d+: (\d+) /", result.stdout, re.MULTILINE)
    return used | {f"--planned-pool {k}": int(size) for k, size in enumerate(planned)}


@pytest.mark.parametrize("name", ["add", "delegate", "dynamic", "memories", "unplanned"])
def test_pools_of_exactly_the_needed_size_do_and_a_byte_less_is_explained(name: str) -> None:
    first = run_case(name)
    pools = _pools(first)
    options = [word for option, size in pools.items() for word in (option.split()[0], str(size))]
    exact = run_case(name, *options)
    assert (exact.status, exact.outputs) == (OK, first.outputs), exact.stderr
    for k, size in enumerate(pools.values()):
        if size == 0:
            continue
        smaller = list(options)
        smaller[2 * k + 1] = str(size - 1)
        result = run_case(name, *smaller)
        assert result.error in (0x21, 0x31), result.stderr
        found = re.search(r"memory: requested (\d+), available (\d+), missing (\d+) bytes", result.stderr)
        assert found, result.stderr
        requested, available, missing = map(int, found.groups())
        assert (missing, available) == (1, requested - 1)


def test_all_memory_ids_may_share_one_arena() -> None:
    alone = run_case("memories")
    sizes = [size for option, size in _pools(alone).items() if option.startswith("--planned")]
    shared = run_case("memories", "--planned-pool", str(sum(sizes)))
    assert shared.outputs == alone.outputs
    assert run_case("memories", "--planned-pool", str(sum(sizes) - 1)).status == CANNOT_LOAD


class _AddUnlessTold(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, rounding: str | None) -> torch.Tensor:
        return a + b if rounding is None else a


def test_an_input_that_was_none_at_export_takes_nothing_of_its_file() -> None:
    a, b = case("add").inputs
    edge = to_edge(torch.export.export(_AddUnlessTold(), (a, b, None), strict=True))
    result = run(edge.to_executorch().buffer, (a, b, torch.ones(5)), shaped=False)
    assert result.status == OK, result.stderr
    assert result.outputs == (bytes_of(a + b),)

# SPDX-License-Identifier: Apache-2.0
"""arm_executor_runner on the virtual Corstone: outputs equal to the host reference, or one clear line."""

from __future__ import annotations

import base64
import re
import struct
from pathlib import Path

import board_runs
import pytest
from board_runs import needs_runner

from fvp.virtual.runner_build import RunnerBuild, build

pytestmark = needs_runner

U55, U65, U85 = "corstone-300", "corstone-300", "corstone-320"
SHARED, DEDICATED = "Shared_Sram", "Dedicated_Sram_384KB"
OK, INTERNAL, USAGE, DOES_NOT_FIT, WRONG_OUTPUT = 0, 1, 2, 4, 5
IDENTIFIER = slice(8, 12)
"""Of an ETDump, which starts with its size."""


def _run(image: Path, board: str, npu: str, name: str, folder: Path, arguments: str = "") -> board_runs.Run:
    example = board_runs.example(name, npu)
    return board_runs.run(
        image, board, npu, folder, program=example.program, inputs=example.inputs, arguments=arguments
    )


def _require_refused(run: board_runs.Run, status: int, pattern: str) -> None:
    assert run.status == status, run.log
    assert re.search(rf"^E \[executorch:arm_executor_runner\] .*{pattern}", run.log, re.MULTILINE), run.log
    assert f"ended with exit status {status}" in run.log.splitlines()[-1]
    assert "Program complete" not in run.log
    assert not run.outputs()


@pytest.mark.parametrize(
    ("board", "memory_mode", "npu", "name"),
    [
        (U85, DEDICATED, "ethos-u85-256", "two_u85_256"),
        (U85, DEDICATED, "ethos-u85-256", "two_u85_256_dedicated"),
        (U85, DEDICATED, "ethos-u85-256", "two_u85_256_direct"),
        (U85, DEDICATED, "ethos-u85-256", "two_u85_256_external"),
        (U55, SHARED, "ethos-u55-128", "two_u55_128"),
        (U65, SHARED, "ethos-u65-256", "two_u65_256"),
    ],
)
def test_outputs_equal_the_host_reference(board, memory_mode, npu, name, tmp_path):
    run = _run(board_runs.npu_only(board, memory_mode), board, npu, name, tmp_path, "--run-id a1b2")
    assert run.status == OK, run.log
    assert run.outputs() == list(board_runs.example(name, npu).expected)
    assert run.jobs == 1
    assert "Program complete, exiting." in run.log
    assert run.log.rstrip().endswith("run a1b2 ended with exit status 0")


@pytest.mark.parametrize(
    ("board", "memory_mode", "npu", "name"),
    [
        (U85, DEDICATED, "ethos-u85-256", "split_u85_256"),
        (U55, SHARED, "ethos-u55-128", "split_u55_128"),
    ],
)
def test_delegates_with_cpu_operators_between_them(board, memory_mode, npu, name, tmp_path):
    run = _run(board_runs.elf(board, memory_mode, name), board, npu, name, tmp_path)
    assert run.status == OK, run.log
    assert run.outputs() == list(board_runs.example(name, npu).expected)
    assert run.jobs == 2
    assert "NPU delegations: 2 (2.00 per inference)" in run.log


def test_five_inferences_give_the_same_outputs_and_use_no_more_memory(tmp_path):
    image, name, npu = board_runs.npu_only(U85, DEDICATED), "two_u85_256", "ethos-u85-256"
    one, five = (_run(image, U85, npu, name, tmp_path, f"--num-inferences {count}") for count in (1, 5))
    assert (one.status, five.status, five.jobs) == (OK, OK, 5)
    assert one.outputs() == five.outputs() == list(board_runs.example(name, npu).expected)
    memory = re.compile(r"^.*_(?:allocator|pte)_.*$", re.MULTILINE)
    assert memory.findall(one.log) == memory.findall(five.log)
    assert one.memory_used == five.memory_used


def test_stack_has_room(tmp_path):
    run = _run(board_runs.npu_only(U85, DEDICATED), U85, "ethos-u85-256", "two_u85_256", tmp_path)
    assert 0 < run.memory_used["stack"] < 0x1000 - 512, "of 4 KiB, with 512 bytes for a fault's report"


def test_few_stops(tmp_path):
    """A stop costs tens of microseconds, so a run must not have hundreds of them."""
    run = _run(board_runs.npu_only(U85, DEDICATED), U85, "ethos-u85-256", "two_u85_256", tmp_path)
    assert run.stops < 130


# --- bundled programs, profiles, the console ---------------------------------------------------------------


def _run_bundle(data: bytes, folder: Path) -> board_runs.Run:
    (folder / "program.bpte").write_bytes(data)
    line = "executor_runner -m program.bpte -o out --bundle"
    return board_runs.execute(board_runs.npu_only(U85, DEDICATED), U85, "ethos-u85-256", folder, line)


def test_bundled_program_that_passes(tmp_path):
    run = _run_bundle((board_runs.PROGRAMS / "two_u85_256.bpte").read_bytes(), tmp_path)
    assert run.status == OK, run.log
    assert "Test_result: PASS" in run.log.splitlines()
    assert "compared 704 elements with the bundled outputs: 0 differ" in run.log


def test_bundled_program_with_another_expected_output(tmp_path):
    data = (board_runs.PROGRAMS / "two_u85_256.bpte").read_bytes()
    good = _run_bundle(data, tmp_path)
    place = data.index(good.outputs()[1])
    run = _run_bundle(data[:place] + bytes([data[place] ^ 64]) + data[place + 1 :], tmp_path)
    assert run.status == WRONG_OUTPUT
    assert "Test_result: FAIL" in run.log.splitlines()
    assert "1 differ" in run.log and "Program complete" not in run.log


def test_bundle_asked_for_but_not_given(tmp_path):
    run = _run_bundle((board_runs.PROGRAMS / "two_u85_256.pte").read_bytes(), tmp_path)
    _require_refused(run, USAGE, "--bundle: the file is no bundled program")


def test_profile_goes_to_a_file(tmp_path):
    image = board_runs.npu_only(U85, DEDICATED)
    run = _run(image, U85, "ethos-u85-256", "two_u85_256", tmp_path, "--etdump e.etdp --num-inferences 3")
    assert run.status == OK, run.log
    assert run.files["e.etdp"][IDENTIFIER] == b"ED00"
    assert run.files["e.etdp"].count(b"EthosUBackend::execute()") >= 1


def test_program_in_the_firmware_results_over_the_uart(tmp_path):
    """Corstone-310 with Ethos-U55, no semihosting: inputs of ones, outputs and profile as text, EOT."""
    name, npu = "two_u55_128", "ethos-u55-128"
    program = board_runs.PROGRAMS / f"{name}.pte"
    options = {"ET_NUM_INFERENCES": "2", "EXECUTORCH_ENABLE_EVENT_TRACER": "ON"}
    image = build(RunnerBuild("corstone-310", SHARED, embedded=program, semihosting=False, options=options))
    run = board_runs.execute(image, "corstone-310", npu, tmp_path, "")
    expected = board_runs.outputs_for_ones(name, npu)
    for number, output in enumerate(expected):
        values = re.findall(rf"^Output\[{number}\]\[\d+\]: \(char\) (-?\d+)$", run.log, re.MULTILINE)
        assert list(map(int, values)) == output
    assert run.status is None and run.jobs == 2
    assert "NPU Inferences : 2" in run.log
    assert "run none ended with exit status 0" in run.log
    block = run.log[run.log.index("#[RUN THIS]") : run.log.index("#[END]")]
    encoded = re.search(r'echo "([^"]+)" \| base64 -d >etdump.bin', block)[1]
    assert base64.b64decode(encoded)[IDENTIFIER] == b"ED00"


# --- refused, in one decoded line ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("npu", "name", "pattern"),
    [
        ("ethos-u85-512", "two_u85_256", "built for ethos-u85-256 .*this NPU is ethos-u85-512 "),
        ("ethos-u85-256", "two_u55_128", "built for ethos-u55-128 .*this NPU is ethos-u85-256 "),
    ],
)
def test_program_for_another_npu(npu, name, pattern, tmp_path):
    example = board_runs.example(name, name.replace("two_u", "ethos-u").replace("_", "-"))
    image = board_runs.npu_only(U85, DEDICATED)
    run = board_runs.run(image, U85, npu, tmp_path, program=example.program, inputs=example.inputs)
    _require_refused(run, DOES_NOT_FIT, pattern)
    assert run.jobs == 0


def test_input_of_the_wrong_size(tmp_path):
    example = board_runs.example("two_u85_256", "ethos-u85-256")
    image = board_runs.npu_only(U85, DEDICATED)
    inputs = (example.inputs[0], example.inputs[1][:-1])
    run = board_runs.run(image, U85, "ethos-u85-256", tmp_path, program=example.program, inputs=inputs)
    _require_refused(run, USAGE, r"i1\.bin: has 191 bytes, the input of the program 192")


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("executor_runner -m program.pte --frobnicate 1", 'unknown option "--frobnicate"'),
        ("executor_runner -m", '"-m" needs a value'),
        ("executor_runner -m program.pte --num-inferences=0", '"0" is not a number of inferences'),
        ("executor_runner -m absent.pte", r"absent\.pte: cannot be opened for reading"),
        ("executor_runner -o out", "no program; give -m FILE"),
        ("executor_runner -m program.pte -i i0.bin", "1 input files, method 'forward' has 2 inputs"),
        ("executor_runner -m program.pte --method nothing", "nothing"),
    ],
)
def test_command_lines_that_cannot_work(line, pattern, tmp_path):
    example = board_runs.example("two_u85_256", "ethos-u85-256")
    (tmp_path / "program.pte").write_bytes(example.program)
    (tmp_path / "i0.bin").write_bytes(example.inputs[0])
    run = board_runs.execute(board_runs.npu_only(U85, DEDICATED), U85, "ethos-u85-256", tmp_path, line)
    _require_refused(run, USAGE, pattern)


def _patched(program: bytes, name: bytes, offset: int, data: bytes) -> bytes:
    """The program with bytes changed at an offset from a VelaBin block's header."""
    start = program.index(name.ljust(16, b"\0")) + offset
    return program[:start] + data + program[start + len(data) :]


@pytest.mark.parametrize(
    ("block", "offset", "data", "pattern"),
    [
        (b"vela_bin_stream", 0, b"x", 'VelaBin: starts with "xela_bin_stream"'),
        (b"vela_end_stream", 0, b"x", "VelaBin .*ends before its end mark"),
        (b"cmd_data", 16, struct.pack("<I", 0x7FFFFFFF), 'VelaBin .*block "cmd_data" has 2147483647 bytes'),
        (b"cmd_data", 0, b"x", 'VelaBin: no block "cmd_data"'),
        (b"cmd_data", 32, b"x", "neither COP1 nor COP2"),
        (b"cmd_data", 36, b"\7", "driver action 7"),
        (b"cmd_data", 20, b"\1", 'external block "cmd_data" has a key of'),
        (b"weight_data", 0, b"inputs\0", 'block "inputs" occurs twice|list "inputs"'),
        (b"scratch_size", 32, struct.pack("<I", 16), "ends at byte .* of a scratch of 16"),
        (b"inputs", 32, struct.pack("<i", -1), 'list "inputs" in .* is damaged'),
        (b"inputs", 36, struct.pack("<i", -5), 'tensor 0 of "inputs" is impossible'),
        (b"outputs", 36 + 32, struct.pack("<i", 5), "output 0 is in region 5"),
    ],
)
def test_damaged_velabin(block, offset, data, pattern, tmp_path):
    example = board_runs.example("two_u85_256", "ethos-u85-256")
    program = _patched(example.program, block, offset, data)
    image = board_runs.npu_only(U85, DEDICATED)
    run = board_runs.run(image, U85, "ethos-u85-256", tmp_path, program=program, inputs=example.inputs)
    _require_refused(run, DOES_NOT_FIT, pattern)
    assert run.jobs == 0


def test_command_the_npu_refuses(tmp_path):
    """The NPU's status is decoded, with the place in the command stream."""
    example = board_runs.example("two_u85_256", "ethos-u85-256")
    program = _patched(example.program, b"cmd_data", 64, struct.pack("<I", 0x3FF))
    image = board_runs.npu_only(U85, DEDICATED)
    run = board_runs.run(image, U85, "ethos-u85-256", tmp_path, program=program, inputs=example.inputs)
    _require_refused(run, INTERNAL, r"ethos-u: command parse error at byte \d+ .*STATUS [0-9a-f]{8}")


# --- memory --------------------------------------------------------------------------------------------


def _with_temp_pool(size: int, folder: Path) -> Path:
    """The runner for the U55 with a temp pool of `size` bytes."""
    options = ["--memory-mode", SHARED, "--stack", "0x1000", "--file-pool", "0x10000"]
    options += ["--method-pool", "0x10000", "--temp-pool", str(size), "--fast-pool", "0"]
    return board_runs.relink(board_runs.npu_only(U55, SHARED), folder, U55, *options)


def test_temp_pool_of_exactly_the_needed_size(tmp_path):
    name, npu = "two_u55_128", "ethos-u55-128"
    usual = _run(board_runs.npu_only(U55, SHARED), U55, npu, name, tmp_path)
    needed = int(re.search(r"temp_allocator: +(\d+) /", usual.log)[1])

    exact = _run(_with_temp_pool(needed, tmp_path), U55, npu, name, tmp_path)
    assert exact.status == OK, exact.log
    assert exact.outputs() == list(board_runs.example(name, npu).expected)

    for output in tmp_path.glob("out-*.bin"):
        output.unlink()
    short = _run(_with_temp_pool(needed - 1, tmp_path), U55, npu, name, tmp_path)
    _require_refused(short, DOES_NOT_FIT, r"temp memory: requested \d+, available \d+, missing 1 bytes")

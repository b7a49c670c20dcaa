# SPDX-License-Identifier: Apache-2.0
"""Whole inferences, in our runner and in Arm's firmware: bit-equal to PyTorch's quantised model, or an error.

The programs and what PyTorch answers are made by ``tests/fvp/make_data.py``.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from aot import artefact, npu_profile
from fvp.platform import Job
from fvp.virtual import mlek, tools
from fvp.virtual.gdb import GdbClient
from fvp.virtual.process import QemuProcess
from fvp.virtual.run import FIRMWARES, VirtualCorstone
from npu.config import CONFIGS, Family
from report.errors import CompileError, PlatformTimeout, RunFailed, UsageError

DATA = Path(__file__).parents[1] / "data" / "fvp"
PROGRAMS = sorted(path.stem for path in DATA.glob("*.pte"))

STOPS_AT_MOST = 330
"""A run's time beside the NPU is mostly its stops, and their number does not depend on the machine."""

BANNERS = {"ours": "arm_executor_runner", "mlek": "Ethos-U Evaluation Kit"}
REASONS = [VirtualCorstone.available_for(t, r) for t in ("ethos-u85-256", "ethos-u55-128") for r in FIRMWARES]
REASON = next(filter(None, REASONS), None)
needs_platform = pytest.mark.skipif(REASON is not None, reason=str(REASON))
each_runner = pytest.mark.parametrize("runner", list(FIRMWARES))


def job(stem: str, **changes: object) -> tuple[Job, list[np.ndarray]]:
    """A job for one of the programs (in Arm's firmware unless told otherwise), and its outputs."""
    arrays = np.load(DATA / f"{stem}.npz")
    inputs = tuple(arrays[name] for name in sorted(arrays) if name.startswith("input"))
    outputs = [arrays[name] for name in sorted(arrays) if name.startswith("output")]
    specs = tuple((output.shape, output.dtype) for output in outputs)
    target = "ethos-" + "-".join(stem.split("_")[1:])
    made = Job(DATA / f"{stem}.pte", target, inputs, 60.0, False, specs)
    return dataclasses.replace(made, **{"runner": "mlek", **changes}), outputs  # type: ignore[arg-type]


def children() -> set[int]:
    """Process ids of this process's children."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for path in lists for pid in path.read_text().split()}


@pytest.fixture(autouse=True)
def nothing_stays_behind():  # type: ignore[no-untyped-def]
    before = children()
    yield
    assert children() <= before


@needs_platform
@each_runner
@pytest.mark.parametrize("stem", PROGRAMS)
def test_outputs_equal_pytorch(stem: str, runner: str) -> None:
    run, expected = job(stem, runner=runner)
    outcome = VirtualCorstone().run(run)
    for actual, wanted in zip(outcome.outputs, expected, strict=True):
        assert actual.dtype == wanted.dtype and np.array_equal(actual, wanted)
    assert all(check.passed for check in outcome.checks)
    assert outcome.npu_jobs == (2 if "mixed" in stem else 1)
    assert BANNERS[runner] in " ".join(outcome.banner)
    assert 0 < outcome.npu_seconds < outcome.wall_seconds
    assert outcome.stops <= STOPS_AT_MOST


@needs_platform
@each_runner
def test_counters_are_simulated_and_what_nobody_counts_is_none(runner: str) -> None:
    outcome = VirtualCorstone().run(job("mixed_u85_256", runner=runner)[0])
    counters = dict(outcome.counters)
    assert counters["npu_active"] and counters["npu_total"] == counters["npu_active"]
    assert counters["sram_rd_data_beat_received"] or counters["ext_rd_data_beat_received"]
    # Our runner reads the event that the NPU model does not count; Arm's firmware subtracts two that it does.
    assert counters["npu_idle"] == {"ours": None, "mlek": 0}[runner]
    assert bool(outcome.counters_note) == (runner == "ours")


@needs_platform
@each_runner
def test_two_runs_are_the_same(runner: str) -> None:
    run, _ = job("layouts_u55_128", runner=runner)
    first, second = (VirtualCorstone().run(run) for _ in range(2))
    assert (first.log, first.stops) == (second.log, second.stops)


@needs_platform
def test_verbose_streams_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = VirtualCorstone().run(job("layouts_u85_256", verbose=True)[0])
    assert outcome.log in capsys.readouterr().err.replace("\r", "")


@needs_platform
@pytest.mark.parametrize(
    ("runner", "told"),
    [
        ("ours", r"built for ethos-u85-256 .*, this NPU is ethos-u85-512"),
        ("mlek", "NPU config mismatch|macs_per_cc"),
    ],
)
def test_program_for_another_mac_count_fails_with_the_drivers_reason(runner: str, told: str) -> None:
    with pytest.raises(RunFailed, match=told) as caught:
        VirtualCorstone().run(job("layouts_u85_256", target="ethos-u85-512", runner=runner)[0])
    assert caught.value.log  # type: ignore[attr-defined]


def corrupted(stem: str, folder: Path) -> Path:
    """The program with the opcode of its first one-word command replaced by an unused one."""
    data = bytearray((DATA / f"{stem}.pte").read_bytes())
    stream = data.index(b"COP1") + 32
    struct.pack_into("<H", data, stream, 0x0FF)
    path = folder / "corrupted.pte"
    path.write_bytes(data)
    return path


@needs_platform
@each_runner
def test_npu_fault_is_reported_with_its_reason(tmp_path: Path, runner: str) -> None:
    path = corrupted("layouts_u85_256", tmp_path)
    with pytest.raises(RunFailed, match=r"NPU StreamError.*byte 0x0"):
        VirtualCorstone().run(job("layouts_u85_256", pte=path, runner=runner)[0])


@needs_platform
def test_time_limit_holds_in_a_real_run() -> None:
    start = time.monotonic()
    with pytest.raises(PlatformTimeout, match=r"no result within 0\.02 s"):
        VirtualCorstone().run(job("mixed_u85_256", timeout=0.02)[0])
    assert time.monotonic() - start < 5


@needs_platform
def test_emulator_killed_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    start, resume, pids = QemuProcess.__init__, GdbClient.resume, []
    stops = itertools.count()

    def noted(self, *arguments) -> None:  # type: ignore[no-untyped-def]
        start(self, *arguments)
        pids.append(self.pid)

    def doomed(self, *arguments, **options):  # type: ignore[no-untyped-def]
        if next(stops) == 20:
            os.kill(pids[0], signal.SIGKILL)
        return resume(self, *arguments, **options)

    monkeypatch.setattr(QemuProcess, "__init__", noted)
    monkeypatch.setattr(GdbClient, "resume", doomed)
    with pytest.raises(RunFailed, match=r"went away.*SIGKILL"):
        VirtualCorstone().run(job("mixed_u85_256")[0])


@needs_platform
def test_interrupt_from_the_keyboard_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mlek.MlekFirmware, "outputs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        VirtualCorstone().run(job("layouts_u85_256")[0])


# A shell ignores SIGINT in background jobs, and children inherit that: the tool gets the default back.
CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {root!r})
from tests.fvp.test_virtual_run import job
from fvp.virtual.machine import Machine
from fvp.virtual.run import VirtualCorstone
import time
Machine.run = lambda *_: (print("running", flush=True), time.sleep(600))
VirtualCorstone().run(job("layouts_u85_256")[0])
"""


@needs_platform
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_killing_the_tool_kills_the_emulator(number: signal.Signals) -> None:
    root = str(Path(__file__).parents[2])
    tool = subprocess.Popen([sys.executable, "-c", CHILD.format(root=root)], stdout=subprocess.PIPE, cwd=root)
    assert tool.stdout is not None and tool.stdout.readline() == b"running\n"
    (emulator,) = Path(f"/proc/{tool.pid}/task/{tool.pid}/children").read_text().split()
    assert b"qemu" in Path(f"/proc/{emulator}/cmdline").read_bytes()
    tool.send_signal(number)
    tool.wait(10)
    tool.stdout.close()
    limit = time.monotonic() + 5
    while _alive(int(emulator)) and time.monotonic() < limit:
        time.sleep(0.01)
    assert not _alive(int(emulator))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_platform
def test_job_that_is_not_the_programs(tmp_path: Path) -> None:
    run, _ = job("mixed_u85_256")
    platform = VirtualCorstone()
    with pytest.raises(UsageError, match="1 input"):
        platform.run(dataclasses.replace(run, inputs=run.inputs[:1]))
    with pytest.raises(UsageError, match=r"input 0 is \[1, 8, 8\] in 256 bytes"):
        platform.run(dataclasses.replace(run, inputs=run.inputs[::-1]))
    with pytest.raises(UsageError, match="output 1"):
        platform.run(dataclasses.replace(run, output_specs=(run.output_specs[0], ((4,), np.dtype("int8")))))
    with pytest.raises(UsageError, match="cannot read"):
        platform.run(dataclasses.replace(run, pte=tmp_path / "absent.pte"))
    with pytest.raises(UsageError, match="no prebuilt ExecuTorch firmware for Ethos-U65"):
        platform.run(dataclasses.replace(run, target="ethos-u65-256"))


def test_what_does_not_fit_names_both_numbers() -> None:
    with pytest.raises(CompileError, match="requested 33554433 bytes, available 33554432, missing 1"):
        mlek.require_fit(mlek.MODEL, (32 << 20) + 1)


def test_u65_runs_in_our_runner_alone() -> None:
    reason = VirtualCorstone.available_for("ethos-u65-512", "mlek")
    assert reason == "Arm ships no prebuilt ExecuTorch firmware for Ethos-U65"
    assert VirtualCorstone.capabilities.targets == set(CONFIGS)


@needs_platform
def test_without_build_tools_arms_firmware_runs_and_the_outcome_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FIRMWARES["ours"], "missing", classmethod(lambda *_: "cmake not installed"))
    outcome = VirtualCorstone().run(job("layouts_u85_256", runner=None)[0])
    assert outcome.provenance["runner"] == "mlek"
    assert outcome.remarks == ("not run in --runner ours: cmake not installed",)
    assert VirtualCorstone.available_for("ethos-u65-256") == "cmake not installed"


def test_unknown_runner_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown runner 'other'"):
        VirtualCorstone.available_for("ethos-u85-256", "other")


def test_missing_pieces_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(tools.TOOLS_VARIABLE, str(tmp_path))
    monkeypatch.delenv(tools.QEMU_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "qemu-arm is not installed" in str(VirtualCorstone.available())
    assert "apt-get install cmake" in str(FIRMWARES["ours"].missing(Family.U85))
    for family, board in FIRMWARES["mlek"].boards.items():
        assert board in str(FIRMWARES["mlek"].missing(family))


@needs_platform
def test_memory_is_timed_for_the_system_that_the_program_is_for() -> None:
    """As `armdeploy profile` does; what has no timing of ExecuTorch's takes the evaluation kit's."""
    system, mode = "Ethos_U55_High_End_Embedded", "Shared_Sram"
    stem = next(stem for stem in PROGRAMS if stem.endswith("u55_128"))
    run, _ = job(stem, runner="ours", system_config=system, memory_mode=mode)
    outcome = VirtualCorstone().run(run)
    assert outcome.provenance["timing_adapter"] == f"executorch:{system}:{mode}"
    profile = npu_profile.profile(artefact.read(run.pte), npu_profile.Wanted(system, mode))
    assert [timing.total for timing in outcome.timings] == [each["cycles"] for each in profile["networks"]]
    outcome = VirtualCorstone().run(dataclasses.replace(run, system_config="Other"))
    assert outcome.provenance["timing_adapter"] == "mlek:ta_config_u55_high_end"

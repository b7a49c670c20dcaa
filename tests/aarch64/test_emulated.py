# SPDX-License-Identifier: Apache-2.0
"""executor_runner built and run under emulation: both modes, counts that repeat, proof that bites."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from fvp.aarch64 import bundle, host_xnnpack, reference, runner, study, tools
from fvp.aarch64.platform import Aarch64Emulated
from fvp.inference import Request
from fvp.platform import Job
from report import pte
from report.cpu_profile import CpuProfile
from report.errors import EnvironmentError_, RunFailed, UsageError
from report.record import SCHEMA_PATH

DATA = Path(__file__).parent.parent / "data" / "aarch64"
PROGRAM = DATA / "two_conv_fp16_xnnpack_cortex-a-sme2.pte"
PROGRAM_INT8 = DATA / "two_conv_int8_xnnpack_cortex-a-sme2.pte"

pytestmark = pytest.mark.skipif(
    Aarch64Emulated.available() is not None, reason=str(Aarch64Emulated.available())
)


def counts(profile: CpuProfile) -> list[tuple[str, int, Mapping[str, int]]]:
    return [(operator.name, operator.cost, operator.classes) for operator in profile.operators]


@pytest.fixture(scope="module")
def first() -> study.Study:
    return study.infer(Request(PROGRAM, timeout=300))


def test_sme2_and_neon_run_their_own_kernels_and_agree(first: study.Study) -> None:
    assert first.error is None, first.log
    assert {check.result for check in first.record.checks} == {"pass"}
    details = {check.name: check.detail for check in first.record.checks}
    assert details["end marker"] == "'Program complete, exiting.' printed"
    assert details["run id"].endswith("ended with exit status 0' printed")
    assert details["output files"] == "[3136] bytes, [3136] expected"
    assert details["profile files"] == "written"
    sme2, neon = first.profiles
    assert [operator.path for operator in sme2.operators if operator.category == "convolution"] == [
        "PF16"
    ] * 2
    assert [operator.path for operator in neon.operators if operator.category == "convolution"] == ["F16"] * 2
    assert neon.sme_instructions == 0 and sme2.sme_instructions
    assert any("sme2" in name.split("_") for name in sme2.sme_kernels)
    for profile in first.profiles:
        assert sum(profile.by_category().values()) == profile.inference
        assert 0 < profile.framework < profile.inference < profile.whole


def test_int8_equals_xnnpack_on_the_host_and_tells_its_distance_from_float() -> None:
    found = study.infer(Request(PROGRAM_INT8, target="cortex-a-neon", timeout=300))
    assert found.error is None, found.log
    (output,) = [check for check in found.record.checks if check.name == "output"]
    assert output.detail == f"exact: 1 output(s) bit-equal to {host_xnnpack.HOST_XNNPACK}"
    errors = {metric.name: metric.value for metric in found.record.metrics if metric.name.endswith("_error")}
    assert 0 <= errors["simulation_error"] < errors["quantization_error"] < 0.05


def test_the_record_keeps_to_its_schema_and_tells_no_latency(first: study.Study) -> None:
    document = json.loads(first.record.to_json())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))
    latencies = [metric for metric in document["metrics"] if metric["unit"] == "ns"]
    assert latencies and all(metric["value"] is None and metric["note"] for metric in latencies)


@pytest.mark.parametrize(
    ("program", "target", "message"),
    [
        (PROGRAM, "ethos-u85-256", "not compiled for ethos-u85-256: its delegates are of XnnpackBackend"),
        (DATA.parent / "two_conv_u85_256.pte", "cortex-a", "not compiled for cortex-a"),
    ],
)
def test_a_program_for_another_kind_of_target_is_refused(program: Path, target: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        study.is_for_cortex_a(program, target)
    assert message in caught.value.one_line()


def test_a_second_run_counts_the_same(first: study.Study) -> None:
    values = np.load(DATA / f"{PROGRAM.stem}_artifacts" / "input-0.npy")
    outputs = ((tuple(first.outputs[0].shape), first.outputs[0].dtype),)
    job = Job(PROGRAM, "cortex-a-sme2", (values,), 300, False, outputs)
    outcome, second = Aarch64Emulated().profiled(job)
    assert counts(first.profiles[0]) == counts(second)
    assert first.profiles[0].inference == second.inference
    assert np.array_equal(outcome.outputs[0], first.outputs[0])


def test_a_cpu_without_sme_fails_the_sme2_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a build without these kernels does as well: everything runs on NEON, with the right output."""

    def machine(_self: Aarch64Emulated, built: bundle.Bundle, _threads: int) -> runner.Machine:
        qemu, version = tools.require_qemu()
        return runner.Emulated(qemu, version, built.command(), cpu="max,sme=off")

    monkeypatch.setattr(Aarch64Emulated, "machine", machine)
    result = study.infer(Request(PROGRAM, timeout=300))
    assert isinstance(result.error, RunFailed) and result.record.exit.code == 5
    assert "0 of 2 convolutions and GEMMs ran KleidiAI's kernels" in result.error.one_line()


def test_wrong_input_and_unknown_options_are_refused_by_the_runner() -> None:
    built = bundle.build()
    qemu, version = tools.require_qemu()
    machine = runner.Emulated(qemu, version, built.command())
    data = PROGRAM.read_bytes()
    job = runner.RunnerJob(data, (bytes(10),), (3136,), "sme2", 60.0)
    with pytest.raises(RunFailed, match="has 10 bytes, the program takes 1536"):
        runner.run(machine, job)
    with pytest.raises(RunFailed, match="--isa takes sme2, sme or neon"):
        runner.run(machine, runner.RunnerJob(data, (), (), "avx", 60.0))
    with pytest.raises(RunFailed, match="File size is too small"):
        runner.run(machine, runner.RunnerJob(data[:200], (bytes(1536),), (3136,), "sme2", 60.0))


def test_outputs_are_compared_within_the_tolerance_of_their_type() -> None:
    values = np.ones(4, np.float16)
    assert reference.check_close("output", [values], [values], "x", "fp16").detail.startswith("exact")
    near = reference.check_close("output", [values + np.float16(0.01)], [values], "x", "fp16")
    assert near.result == "pass" and near.detail.startswith("close")
    assert reference.check_close("output", [values * 2], [values], "x", "fp16").result == "fail"
    assert reference.check_close("output", [values * np.nan], [values], "x", "fp16").result == "fail"
    assert reference.check_close("output", [values[:2]], [values], "x", "fp16").result == "fail"


def test_quantised_outputs_must_be_equal_unless_float_operators_are_behind_them() -> None:
    values, other = np.ones(4, np.float32), np.full(4, 1.01, np.float32)
    assert reference.check_equal("output", [values], [values], "x", ()).detail.startswith("exact")
    refused = reference.check_equal("output", [other], [values], "x", ())
    assert refused.result == "fail" and refused.detail.endswith("it must be equal")
    behind = reference.check_equal("output", [other], [values], "x", ["Softmax"])
    assert behind.result == "pass" and behind.detail.endswith("allowed for int8 behind float Softmax")
    assert reference.check_equal("output", [values * 2], [values], "x", ["Softmax"]).result == "fail"


def test_which_operators_compute_in_float() -> None:
    assert host_xnnpack.float_operators(pte.load(PROGRAM).method()) == ["Conv2d"]
    assert host_xnnpack.float_operators(pte.load(PROGRAM_INT8).method()) == []


def test_an_old_emulator_and_another_wheel_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "qemu-aarch64"
    old.write_text("#!/bin/sh\necho qemu-aarch64 version 9.2.1\n", encoding="utf-8")
    old.chmod(0o755)
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(old))
    with pytest.raises(EnvironmentError_, match=r"QEMU 9\.2\.1, at least 10\.1 is needed"):
        tools.require_qemu()
    monkeypatch.setenv("ARMDEPLOY_TOOLS", str(tmp_path))
    with pytest.raises(EnvironmentError_, match=r"not unpacked; run \./setup\.sh --enable-cortex-a"):
        tools.require_wheel()
    (tmp_path / "executorch-aarch64" / "executorch-1.5.0.dist-info").mkdir(parents=True)
    with pytest.raises(EnvironmentError_, match=r"wheel is 1\.5\.0: programs are compiled with 1\.5\.1"):
        tools.require_wheel()
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert "aarch64-linux-gnu-g++ not installed" in str(tools.missing_build_tools())

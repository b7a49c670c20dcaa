# SPDX-License-Identifier: Apache-2.0
"""One inference and its proof, on the host platform: what passes, and what may never pass."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from fvp import inference
from fvp.host.platform import HostPlatform
from fvp.inference import Request, infer
from fvp.platform import Check, Outcome
from report import compile_report
from report.errors import EnvironmentError_, UsageError
from report.record import SCHEMA_PATH


@pytest.fixture
def program(compiled: Path, tmp_path: Path) -> Path:
    """A private copy of the U85 program with its report and artefacts."""
    shutil.copytree(compiled, tmp_path / "copy")
    return tmp_path / "copy" / "two_conv_arm_delegate_ethos-u85-256.pte"


def test_the_host_run_is_exact_and_its_record_fits_the_schema(program: Path, tmp_path: Path) -> None:
    result = infer(Request(program, platform="host", output_dir=tmp_path / "out"))
    document = json.loads(result.record.to_json())
    jsonschema.Draft202012Validator(json.loads(SCHEMA_PATH.read_text())).validate(document)
    assert result.error is None and document["status"] == "ok"
    assert {c["name"]: c["result"] for c in document["checks"]} == {"delegate 0": "pass", "output": "not run"}
    assert document["provenance"]["input_source"] == "the model's example input"
    written = np.fromfile(document["outputs"][0]["path"], np.float32)
    np.testing.assert_array_equal(written, result.outputs[0].ravel())


def test_a_target_without_firmware_runs_on_the_host_and_says_so(compiled: Path) -> None:
    result = infer(Request(compiled / "two_conv_arm_delegate_ethos-u65-512.pte", runner="mlek"))
    assert result.error is None and result.record.platform["kind"] == "host"
    told = "Arm ships no prebuilt ExecuTorch firmware for Ethos-U65"
    assert any(told in warning for warning in result.record.warnings)


def test_asking_for_arms_firmware_on_u65_is_an_error(compiled: Path) -> None:
    pte = compiled / "two_conv_arm_delegate_ethos-u65-512.pte"
    with pytest.raises(EnvironmentError_, match="ships no prebuilt"):
        infer(Request(pte, platform="virtual", runner="mlek"))


def test_u65_runs_in_our_runner_on_the_virtual_board(compiled: Path) -> None:
    result = infer(Request(compiled / "two_conv_arm_delegate_ethos-u65-512.pte", platform="virtual"))
    assert result.error is None and result.record.platform["board"] == "corstone-300"


def test_other_inputs_give_other_outputs(program: Path) -> None:
    first, second, again = (infer(Request(program, seed=s, platform="host")).outputs[0] for s in (1, 2, 1))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, again)


def test_without_a_report_the_host_proves_nothing(program: Path) -> None:
    compile_report.path_for(program).unlink()
    result = infer(Request(program, platform="host"))
    assert result.record.exit.code == 5 and "no output could be checked" in result.record.exit.reason


def test_a_report_of_another_file_is_not_used(program: Path) -> None:
    program.write_bytes(program.read_bytes() + bytes(16))
    assert compile_report.find(program) is None


def test_a_damaged_report_is_a_usage_error(program: Path) -> None:
    compile_report.path_for(program).write_text("{}")
    with pytest.raises(UsageError, match="damaged compile report"):
        infer(Request(program, platform="host"))


def test_a_wrong_delegate_is_found(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: one element of the NPU's answer is changed, the TOSA comparison must see it."""
    from fvp.host import executor

    right = executor.execute

    def wrong(*arguments: object) -> list[np.ndarray]:
        outputs = [array.copy() for array in right(*arguments)]
        outputs[0].flat[-1] ^= 1
        return outputs

    monkeypatch.setattr(executor, "execute", wrong)
    result = infer(Request(program, platform="host"))
    assert (result.record.status, result.record.exit.code) == ("wrong_output", 5)
    assert "1 of 1568 elements differ, first at [0, 7, 13, 13]" in result.record.exit.reason


class _FakePlatform(HostPlatform):
    """A platform whose answer is given."""

    name = "fake"
    answer: Outcome

    def run(self, job: object) -> Outcome:
        return self.answer


@pytest.mark.parametrize(
    ("change", "passed", "status"),
    [(0.0, True, "ok"), (1e-6, True, "wrong_output"), (0.0, False, "wrong_output")],
)
def test_a_platform_is_compared_with_the_reference(
    program: Path, monkeypatch: pytest.MonkeyPatch, change: float, passed: bool, status: str
) -> None:
    expected = infer(Request(program, platform="host")).outputs[0]
    fake = _FakePlatform()
    fake.answer = Outcome(
        (expected + np.float32(change),), "", {}, 0.0, 0.0, checks=(Check("end marker", passed),)
    )
    monkeypatch.setattr(inference, "choose", lambda *_: (fake, ""))
    monkeypatch.setattr(inference, "HostPlatform", int)  # the fake must not count as the reference itself
    assert infer(Request(program)).record.status == status

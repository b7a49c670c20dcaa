# SPDX-License-Identifier: Apache-2.0
"""doctor: names what is missing, what that disables and how to get it; fails only for required pieces."""

from __future__ import annotations

import json
import stat
from importlib import metadata
from pathlib import Path

import pytest

from fvp import doctor


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARMDEPLOY_TOOLS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ARMDEPLOY_QEMU", raising=False)
    return tmp_path


def by_name() -> dict[str, doctor.Finding]:
    return {finding.name: finding for finding in doctor.examine()}


def test_missing_optional_pieces_do_not_fail(bare_machine: Path) -> None:
    findings = by_name()
    assert findings["qemu-arm"].status == "missing" and findings["firmware corstone-320"].status == "missing"
    assert doctor.exit_code(list(findings.values())) == 0
    text = doctor.to_text(list(findings.values()))
    assert "qemu-arm: missing; disables run --platform virtual" in text and "./setup.sh" in text


def test_a_missing_or_wrong_required_package_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "tosa-tools":
            return "2020.1.0"
        if name == "executorch":
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    findings = by_name()
    assert findings["tosa-tools"].status == "wrong version" and findings["tosa-tools"].version == "2020.1.0"
    assert findings["executorch"].status == "missing"
    assert "executorch[ethos-u]==1.5.1" in findings["executorch"].get
    assert doctor.exit_code(list(findings.values())) == 3


@pytest.mark.parametrize("banner", ["qemu-arm version 7.2.22 (Debian)", "no emulator at all"])
def test_an_old_or_false_qemu_is_not_ok(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, banner: str
) -> None:
    program = bare_machine / "qemu"
    program.write_text(f"#!/bin/sh\necho '{banner}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("ARMDEPLOY_QEMU", str(program))
    assert by_name()["qemu-arm"].status.startswith("unusable")


def test_the_json_holds_the_same_findings() -> None:
    findings = doctor.examine()
    assert [f["name"] for f in json.loads(doctor.to_json(findings))] == [f.name for f in findings]

# SPDX-License-Identifier: Apache-2.0
"""What is installed, what a missing piece disables, and the exact command to get it."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement

from fvp.aarch64 import adb
from fvp.aarch64 import tools as aarch64
from fvp.arm import programs
from fvp.virtual import runner_build, tools
from npu.config import Family
from report.errors import ArmdeployError, EnvironmentError_
from report.tables import table

_SETUP = "./setup.sh"
_DISABLES = {
    "tosa-tools": "compile, and the check of delegates against tosa_reference_model",
    "pyelftools": "run --platform virtual",
    "capstone": "run --platform virtual",
    "pillow": "images as input and calibration data",
}
_FIRMWARE = {"corstone-320": "ethos-u85", "corstone-300": "ethos-u55"}
_WHEEL = "executorch for AArch64"
_FOR_CORTEX_A = frozenset({"qemu-aarch64", aarch64.COMPILER, _WHEEL, "cmake", "ninja"})
MISSING, WRONG, OK = "missing", "wrong version", "ok"


@dataclass(frozen=True)
class Finding:
    """One piece: `status` is ok, missing or wrong version; `get` is the command that mends it."""

    name: str
    status: str
    version: str | None
    required: bool
    disables: str
    get: str


def examine(*, cortex_a: bool = False) -> list[Finding]:
    """Look at this machine; never raises for something missing.

    Args:
        cortex_a: what the Cortex-A targets need to run under emulation counts as required.
    """
    boards = [_qemu(), *map(_firmware, _FIRMWARE), *map(_fvp, Family)]
    found = [*_packages(), *boards, *_cortex_a(), _adb(), *_optional()]
    needed = _FOR_CORTEX_A if cortex_a else ()
    return [dataclasses.replace(f, required=True) if f.name in needed else f for f in found]


def exit_code(findings: Sequence[Finding]) -> int:
    """3 when a required piece is missing or has the wrong version, else 0."""
    bad = any(f.required and f.status != OK for f in findings)
    return EnvironmentError_.exit_code if bad else 0


def to_json(findings: Sequence[Finding]) -> str:
    """The findings as one JSON document."""
    return json.dumps([dataclasses.asdict(f) for f in findings], indent=2)


def to_text(findings: Sequence[Finding]) -> str:
    """A table of the findings, then a line for each piece that is not there."""
    rows = [
        {
            "piece": f.name,
            "status": f.status,
            "version": f.version or "-",
            "need": "required" if f.required else "optional",
        }
        for f in findings
    ]
    advice = [
        f"{f.name}: {f.status}; disables {f.disables}; get it: {f.get}" for f in findings if f.status != OK
    ]
    return "\n".join([table(rows), *(["", *advice] if advice else [])])


def _packages() -> Iterator[Finding]:
    """Python and every package that this project's own metadata requires, at the version it requires."""
    yield Finding("python", OK, platform.python_version(), True, "everything", _SETUP)
    try:
        requirements = [Requirement(text) for text in metadata.requires("armdeploy") or []]
    except metadata.PackageNotFoundError:
        yield Finding("armdeploy", MISSING, None, True, "everything", _SETUP)
        return
    for requirement in requirements:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield _package(requirement)


def _package(requirement: Requirement) -> Finding:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        version = None
    status = MISSING if version is None else OK if requirement.specifier.contains(version, True) else WRONG
    get = f"{_SETUP}, or pip install '{requirement}'"
    return Finding(
        requirement.name, status, version, True, _DISABLES.get(requirement.name, "compile and run"), get
    )


def _qemu() -> Finding:
    try:
        version = ".".join(map(str, tools.qemu_version(tools.require_qemu())))
        status = OK
    except ArmdeployError as error:
        version, status = None, MISSING if tools.find_qemu() is None else f"unusable ({error.what})"
    get = f"{_SETUP}, or install qemu-user >= 10 and set {tools.QEMU_VARIABLE}"
    return Finding(
        "qemu-arm", status, version, False, "run --platform virtual (run --platform host remains)", get
    )


def _firmware(board: str) -> Finding:
    status = OK if tools.find_image(board) else MISSING
    disables = f"run --platform virtual for {_FIRMWARE[board]}"
    return Finding(f"firmware {board}", status, None, False, disables, _SETUP)


def _fvp(family: Family) -> Finding:
    program, npu = programs.find(family), f"Ethos-{family.name}"
    return Finding(
        f"Arm FVP {npu}",
        OK if program else MISSING,
        program.version if program else None,
        False,
        f"run --platform fvp for {npu} (run --platform virtual remains)",
        f"{_SETUP} --enable-fvps, or set {programs.ROOT_VARIABLE}",
    )


def _cortex_a() -> Iterator[Finding]:
    """What the Cortex-A platforms need: an emulator with SME2, a cross compiler, libraries to link with."""
    disables = "run --target cortex-a (compile remains)"
    try:
        _, version = aarch64.require_qemu()
        status = OK
    except ArmdeployError as error:
        version, status = None, MISSING if aarch64.find_qemu() is None else f"unusable ({error.what})"
    get = f"{aarch64.SETUP}, or set {aarch64.QEMU_VARIABLE} to QEMU >= 10.1"
    yield Finding("qemu-aarch64", status, version, False, disables, get)
    yield _program(aarch64.COMPILER, disables, f"{aarch64.SETUP}, or apt-get install g++-aarch64-linux-gnu")
    version = aarch64.wheel_version()
    status = MISSING if version is None else OK if version == aarch64.EXECUTORCH else WRONG
    yield Finding(_WHEEL, status, version, False, disables, aarch64.SETUP)


def _adb() -> Finding:
    get = f"apt-get install adb, or set {adb.VARIABLE}"
    return _program("adb", "run --platform adb (other platforms remain)", get, adb.find_adb())


def _optional() -> Iterator[Finding]:
    vision = _package(Requirement("torchvision"))
    yield dataclasses.replace(
        vision,
        required=False,
        disables="--model torchvision:NAME",
        get="pip install torchvision (the release for your torch)",
    )
    for name, packages in runner_build.PACKAGES.items():
        disables = "run --runner ours, the runner for ethos-u65 (run --runner mlek remains for the others)"
        yield _program(name, disables, f"{_SETUP}, or apt-get install {packages}")


def _program(name: str, disables: str, get: str, chosen: str | None = None) -> Finding:
    """A program of PATH, or the one `chosen` for it."""
    path = shutil.which(chosen or name)
    if path is None:
        return Finding(name, MISSING, None, False, disables, get)
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    version = re.search(r"\d+(\.\d+)+", answer.stdout)
    return Finding(name, OK, version.group() if version else None, False, disables, get)

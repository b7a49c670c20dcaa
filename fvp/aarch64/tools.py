# SPDX-License-Identifier: Apache-2.0
"""Where the tools of the Cortex-A platforms are: the emulator, the compiler, ExecuTorch's AArch64 wheel."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path

from fvp.virtual.process import ending, run_briefly
from fvp.virtual.tools import find_emulator, tools_dir
from report.errors import EnvironmentError_

QEMU_VARIABLE = "ARMDEPLOY_QEMU_AARCH64"
MINIMUM_QEMU = (10, 1)
COMPILER = "aarch64-linux-gnu-g++"
EXECUTORCH = "1.5.1"
"""Release of the wheel whose libraries the runner is linked with: the one that programs are compiled with."""

SETUP = "./setup.sh --enable-cortex-a"
_VERSION_SECONDS = 5.0


def find_qemu() -> Path | None:
    """qemu-aarch64, see `find_emulator`."""
    return find_emulator("qemu-aarch64", QEMU_VARIABLE)


def require_qemu() -> tuple[Path, str]:
    """The emulator and its version, new enough for SME2.

    Raises:
        EnvironmentError_: there is none, it is no qemu-aarch64, or it is older than `MINIMUM_QEMU`.
    """
    qemu = find_qemu()
    if qemu is None or not qemu.is_file():
        raise EnvironmentError_(f"no qemu-aarch64{f' at {qemu}' if qemu else ''}", hint=f"run {SETUP}")
    version = _qemu_version(str(qemu), qemu.stat().st_mtime_ns)
    if tuple(map(int, version.split("."))) < MINIMUM_QEMU:
        least = ".".join(map(str, MINIMUM_QEMU))
        raise EnvironmentError_(
            f"{qemu} is QEMU {version}, at least {least} is needed",
            why="older releases have no SME2",
            hint=f"run {SETUP}, or set {QEMU_VARIABLE}",
        )
    return qemu, version


@functools.lru_cache(maxsize=8)
def _qemu_version(qemu: str, _modified: int) -> str:
    try:
        status, said = run_briefly([qemu, "--version"], _VERSION_SECONDS)
    except OSError as error:
        raise EnvironmentError_(f"{qemu} is no qemu-aarch64", why=str(error.strerror)) from error
    match = re.match(r"qemu-aarch64\S* version (\d+(?:\.\d+)+)", said)
    if status != 0 or match is None:
        raise EnvironmentError_(
            f"{qemu} is no qemu-aarch64", why=f"--version {ending(status)}: {said[:80]!r}"
        )
    return match[1]


def wheel_dir() -> Path:
    """Where setup unpacks the AArch64 wheel."""
    return tools_dir() / "executorch-aarch64"


def wheel_version() -> str | None:
    """Release of the unpacked wheel, None when there is none."""
    found = [path.name for path in wheel_dir().glob("executorch-*.dist-info")]
    return found[0].removeprefix("executorch-").removesuffix(".dist-info") if found else None


def require_wheel() -> Path:
    """The wheel's package folder, of the right release.

    Raises:
        EnvironmentError_: it is not there, or of another release.
    """
    version = wheel_version()
    if version is None:
        raise EnvironmentError_("ExecuTorch's AArch64 wheel is not unpacked", hint=f"run {SETUP}")
    if version != EXECUTORCH:
        why = f"programs are compiled with {EXECUTORCH}"
        raise EnvironmentError_(f"the AArch64 wheel is {version}", why=why, hint=f"run {SETUP}")
    return wheel_dir() / "executorch"


def missing_build_tools() -> str | None:
    """Programs that a build of the runner lacks, in one line; None when all are there."""
    missing = [name for name in ("cmake", "ninja", COMPILER) if shutil.which(name) is None]
    return f"{', '.join(missing)} not installed; run {SETUP}" if missing else None

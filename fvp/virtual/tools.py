# SPDX-License-Identifier: Apache-2.0
"""Where the things the virtual platform is made of are installed: the emulator, Arm's images, the cache."""

from __future__ import annotations

import functools
import os
import re
import shutil
from pathlib import Path

from fvp.virtual.process import ending, run_briefly
from report.errors import EnvironmentError_, RunFailed

QEMU_VARIABLE, TOOLS_VARIABLE, CACHE_VARIABLE = "ARMDEPLOY_QEMU", "ARMDEPLOY_TOOLS", "ARMDEPLOY_CACHE"
MINIMUM_QEMU = (10, 0)
_VERSION_SECONDS = 5.0
_HINT = "run ./setup.sh"


def tools_dir() -> Path:
    """The folder `setup.sh` installs tools into: ``$ARMDEPLOY_TOOLS``, else ``.tools`` in the project."""
    chosen = os.environ.get(TOOLS_VARIABLE)
    return Path(chosen) if chosen else Path(__file__).resolve().parents[2] / ".tools"


def cache_dir() -> Path:
    """The folder for files that can be made again: ``$ARMDEPLOY_CACHE``, else ``~/.cache/armdeploy``.

    ``off``, which switches the cache of decoded weights off, is no folder: prepared images have to be
    somewhere.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen and chosen != "off" else Path.home() / ".cache" / "armdeploy"


def find_qemu() -> Path | None:
    """qemu-arm, see `find_emulator`."""
    return find_emulator("qemu-arm", QEMU_VARIABLE)


def find_emulator(name: str, variable: str) -> Path | None:
    """What `variable` names (as it is: a wrong choice fails loudly), else the tools' program, else PATH's."""
    chosen = os.environ.get(variable)
    if chosen:
        return Path(chosen)
    installed = tools_dir() / "qemu" / name
    if installed.exists():
        return installed
    found = shutil.which(name) or shutil.which(f"{name}-static")
    return Path(found) if found else None


def require_qemu() -> Path:
    """The emulator, present and new enough.

    Raises:
        EnvironmentError_: there is none, or it is older than `MINIMUM_QEMU`.
        RunFailed: the program is no QEMU.
    """
    qemu = find_qemu()
    if qemu is None or not qemu.exists():
        raise EnvironmentError_(
            f"no qemu-arm{f' at {qemu}' if qemu else ''}",
            where="virtual",
            hint=f"{_HINT} or set {QEMU_VARIABLE}",
        )
    version = qemu_version(qemu)
    if version < MINIMUM_QEMU:
        raise EnvironmentError_(
            f"{qemu} is QEMU {'.'.join(map(str, version))}; at least 10.0 is needed",
            where="virtual",
            why="older releases abort on every Cortex-M model in user mode",
            hint=_HINT,
        )
    return qemu


def qemu_version(qemu: Path) -> tuple[int, ...]:
    """Release of a QEMU executable, such as (11, 1, 3).

    Raises:
        RunFailed: it cannot be started or does not say that it is qemu-arm.
    """
    return _qemu_version(str(qemu), qemu.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _qemu_version(qemu: str, _modified: int) -> tuple[int, ...]:
    try:
        status, said = run_briefly([qemu, "--version"], _VERSION_SECONDS)
    except OSError as error:
        raise RunFailed(f"{qemu} is no qemu-arm", where="virtual", why=str(error.strerror)) from error
    match = re.match(r"qemu-arm\S* version (\d+)\.(\d+)(?:\.(\d+))?", said)
    if status != 0 or not match:
        first_line = (said.strip().splitlines() or [""])[0]
        why = f"--version {ending(status)}, saying {first_line[:80]!r}"
        raise RunFailed(f"{qemu} is no qemu-arm", where="virtual", why=why)
    return tuple(int(part) for part in match.groups() if part)


def find_image(board: str) -> Path | None:
    """Arm's prebuilt inference runner for a board, None when it is not installed."""
    image = tools_dir() / "firmware" / board / "mlek_inference_runner.axf"
    return image if image.is_file() else None


def require_image(board: str) -> Path:
    """Like `find_image`.

    Raises:
        EnvironmentError_: it is not installed.
    """
    image = find_image(board)
    if image is None:
        raise EnvironmentError_(f"Arm's firmware for {board} is not installed", where="virtual", hint=_HINT)
    return image

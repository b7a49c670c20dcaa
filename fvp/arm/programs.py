# SPDX-License-Identifier: Apache-2.0
"""Where Arm's FVPs are installed, and whether what has their name is one."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fvp.frontend.models import MODELS, Model
from fvp.frontend.wording import OPEN_PLATFORM
from fvp.virtual.process import run_briefly
from fvp.virtual.tools import tools_dir
from npu.config import Family

ROOT_VARIABLE = "FVP_ROOT"
_ARMS_MARK = "Fast Models"
"""In what every FVP answers to ``--version``."""

_VERSION_SECONDS = 30.0

_PROGRAMS = {
    Family.U55: "FVP_Corstone_SSE-300_Ethos-U55",
    Family.U65: "FVP_Corstone_SSE-300_Ethos-U65",
    Family.U85: "FVP_Corstone_SSE-320",
}


@dataclass(frozen=True)
class Program:
    """One simulator.

    Attributes:
        path: the executable.
        model: which FVP's name it has.
        version: first line of its answer to ``--version``.
        open_platform: it is this project's front end.
    """

    path: Path
    model: Model
    version: str
    open_platform: bool

    def sha256(self) -> str:
        """Hash of the executable."""
        return hashlib.sha256(self.path.read_bytes()).hexdigest()


def find(family: Family) -> Program | None:
    """Arm's FVP for a family of NPUs: below ``$FVP_ROOT``, below the tools, on PATH; None without one."""
    model = MODELS[_PROGRAMS[family]]
    for path in _candidates(model.program):
        program = identify(path, model)
        if program is not None and not program.open_platform:
            return program
    return None


def _candidates(name: str) -> Iterator[Path]:
    """Executables of that name, likely ones first."""
    roots = [Path(root) for root in (os.environ.get(ROOT_VARIABLE), tools_dir() / "fvp") if root]
    for root in roots:
        yield from (path for path in sorted(root.glob(f"**/{name}")) if os.access(path, os.X_OK))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder or ".") / name
        if path.is_file() and os.access(path, os.X_OK):
            yield path


def identify(path: Path, model: Model) -> Program | None:
    """What a program says that it is; None when it is neither an FVP nor the front end."""
    return _identified(path.resolve(), path.stat().st_mtime_ns, model.program)


@functools.lru_cache(maxsize=16)
def _identified(path: Path, _modified: int, name: str) -> Program | None:
    try:
        status, said = run_briefly([str(path), "--version"], _VERSION_SECONDS)
    except OSError:
        return None
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    ours = OPEN_PLATFORM in said
    if status != 0 or not lines or not (ours or _ARMS_MARK in said):
        return None
    return Program(path, MODELS[name], lines[0], ours)

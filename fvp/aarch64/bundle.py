# SPDX-License-Identifier: Apache-2.0
"""Builds executor_runner for AArch64 Linux and the folder it runs from: runner, wheel libraries, loader, C
library.

The folder needs nothing of the system it runs on but a Linux kernel, so it also runs on Android.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fvp.aarch64 import tools
from fvp.virtual.runner_build import ROOT, locked, run_step
from fvp.virtual.tools import cache_dir
from report.errors import EnvironmentError_

SOURCE = ROOT / "runtime" / "aarch64"
RUNNER = "executor_runner"
LOADER = "lib/ld-linux-aarch64.so.1"


@dataclass(frozen=True)
class Bundle:
    """A folder to run from."""

    folder: Path

    def command(self, folder: str | None = None) -> tuple[str, ...]:
        """The start of the runner's command line; `folder` is where the bundle is on another machine."""
        place = folder or str(self.folder)
        return (f"{place}/{LOADER}", "--library-path", f"{place}/lib", f"{place}/{RUNNER}")

    def sha256(self) -> str:
        """Of the runner."""
        return hashlib.sha256((self.folder / RUNNER).read_bytes()).hexdigest()

    def content_hash(self) -> str:
        """Of the names and bytes of every file."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(self.folder)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()


def missing() -> str | None:
    """Why the bundle cannot be built here, in one line; None when it can."""
    try:
        tools.require_wheel()
    except EnvironmentError_ as error:
        return error.one_line()
    return tools.missing_build_tools()


def build() -> Bundle:
    """The bundle, built or brought up to date.

    Raises:
        EnvironmentError_: a tool or the wheel is missing or of another release, or the build fails.
    """
    wheel = tools.require_wheel()
    if why := tools.missing_build_tools():
        raise EnvironmentError_("cannot build the runner", where=RUNNER, why=why)
    key = hashlib.sha256(repr((str(ROOT), str(wheel.resolve()))).encode()).hexdigest()[:16]
    folder = cache_dir() / "aarch64" / key
    with locked(folder):
        if not (folder / "build.ninja").exists():
            run_step(_configure(folder, wheel), folder)
        run_step(["ninja", "-C", str(folder)], folder)
        run_step(["cmake", "--install", str(folder), "--prefix", str(folder / "bundle")], folder)
    return Bundle(folder / "bundle")


def _configure(folder: Path, wheel: Path) -> list[str]:
    definitions = {
        "CMAKE_TOOLCHAIN_FILE": str(ROOT / "cmake" / "toolchains" / "aarch64-linux-gnu.cmake"),
        "CMAKE_PREFIX_PATH": str(wheel.resolve()),
    }
    entries = [f"-D{name}={value}" for name, value in definitions.items()]
    return ["cmake", "-S", str(SOURCE), "-B", str(folder), "-G", "Ninja", *entries]

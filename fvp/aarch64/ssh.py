# SPDX-License-Identifier: Apache-2.0
"""Another AArch64 Linux machine, by ssh and scp as they are configured for the user."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from fvp.aarch64.remote import Connection, start
from report.errors import EnvironmentError_, UsageError

_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=20")
"""Never ask: a run has no terminal to answer at."""

_UNREACHABLE = 255
_QUESTIONS = {"machine": "uname -m", "home": "pwd", "system": "uname -sr"}


def missing() -> str | None:
    """Programs that are not installed, in one line; None when both are there."""
    absent = [name for name in ("ssh", "scp") if shutil.which(name) is None]
    return f"{', '.join(absent)} not installed; apt-get install openssh-client" if absent else None


class Ssh(Connection):
    """`host` is what ssh takes: a name of its configuration, or USER@MACHINE.

    Raises:
        UsageError: no host.
        EnvironmentError_: it cannot be reached, or is no AArch64 Linux.
    """

    name = "ssh"

    def __init__(self, host: str | None) -> None:
        if not host:
            raise UsageError("which machine?", where="--platform ssh", hint="give --host USER@MACHINE")
        if host.startswith("-"):  # ssh would take it for an option
            raise UsageError(f"{host!r} is no machine", where="--host")
        self._host = self.place = host
        self._told = self.ask(_QUESTIONS)
        self.require_aarch64(self._told["machine"])
        self.base = f"{self._told['home']}/.cache/armdeploy"

    def describe(self) -> dict[str, str]:
        return {"device": self._host, "system": self._told["system"]}

    def shell(self, command: str, seconds: float) -> tuple[int | None, str]:
        status, text = start(["ssh", *_OPTIONS, self._host, command], seconds)
        if status == _UNREACHABLE:
            why = (text.strip().splitlines() or ["ssh does not say why"])[-1]
            hint = "ssh must reach it without a question"
            raise EnvironmentError_(f"cannot reach {self._host}", where=self.name, why=why, hint=hint)
        return status, text

    def push_command(self, files: Sequence[Path], folder: str) -> list[str]:
        return ["scp", "-q", *_OPTIONS, *map(str, files), f"{self._host}:{folder}/"]

    def pull_command(self, paths: Sequence[str], folder: Path) -> list[str]:
        return ["scp", "-q", *_OPTIONS, *(f"{self._host}:{path}" for path in paths), str(folder)]

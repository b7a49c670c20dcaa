# SPDX-License-Identifier: Apache-2.0
"""executor_runner on another machine: the bundle is copied there once, a job's files for each run."""

from __future__ import annotations

import abc
import contextlib
import shlex
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fvp.aarch64 import cores
from fvp.aarch64.bundle import LOADER, RUNNER, Bundle
from fvp.aarch64.runner import Machine
from fvp.virtual.process import run_briefly
from report.errors import ArmdeployError, EnvironmentError_, PlatformTimeout

BRIEFLY, COPYING = 30.0, 600.0
"""Seconds that a short command and a copy may take."""

_GRACE = 15.0
"""Seconds beyond a run's limit for the far end to stop it by itself."""

_MARK = "armdeploy-"
_NO_SPACE = "No space left on device"


class Connection(abc.ABC):
    """How to reach a machine.

    Attributes:
        name: of the platform, for messages.
        place: what the machine is called in messages.
        base: absolute path of the folder there that everything goes into.
    """

    name: str
    place: str
    base: str

    @abc.abstractmethod
    def describe(self) -> dict[str, str]:
        """What the machine is, for the run record."""

    @abc.abstractmethod
    def shell(self, command: str, seconds: float) -> tuple[int | None, str]:
        """Run a shell command there: exit status (None when it did not end in time) and text.

        Raises:
            EnvironmentError_: the machine cannot be reached.
        """

    @abc.abstractmethod
    def push_command(self, files: Sequence[Path], folder: str) -> list[str]:
        """The command that copies `files` into the existing `folder` there."""

    @abc.abstractmethod
    def pull_command(self, paths: Sequence[str], folder: Path) -> list[str]:
        """The command that copies `paths` of that machine into `folder`."""

    def must(self, command: str, what: str) -> str:
        """The text of a short shell command; EnvironmentError_ "cannot `what`" when it fails."""
        status, text = self.shell(command, BRIEFLY)
        if status != 0:
            raise self._failure(f"cannot {what}", status, text)
        return text

    def ask(self, questions: Mapping[str, str]) -> dict[str, str]:
        """What shell commands there print, by name; raises EnvironmentError_.

        Each answer is marked: ssh and adb print words of their own among them.
        """
        command = "; ".join(f'echo "{_MARK}{name}=$({said})"' for name, said in questions.items())
        told = answers(self.must(command, f"ask {self.place} what it is"))
        return {name: told.get(name, [""])[0] or "not told" for name in questions}

    def require_aarch64(self, machine: str) -> None:
        """Raise EnvironmentError_ when the machine's kernel says that it is another one."""
        if machine != "aarch64":
            raise EnvironmentError_(f"{self.place} is {machine}, not AArch64", where=self.name)

    def push(self, files: Sequence[Path], folder: str) -> None:
        """Copy files into an existing folder there; raises EnvironmentError_, PlatformTimeout."""
        self._copy(self.push_command(files, folder), f"cannot copy to {self.place}")

    def pull(self, paths: Sequence[str], folder: Path) -> None:
        """Copy files from there into `folder`; raises EnvironmentError_, PlatformTimeout."""
        self._copy(self.pull_command(paths, folder), f"cannot copy from {self.place}")

    def _copy(self, command: Sequence[str], what: str) -> None:
        status, text = start(command, COPYING)
        if status is None:
            raise PlatformTimeout(what, where=self.name, why=f"not done within {COPYING:g} s")
        if status != 0:
            raise self._failure(what, status, text)

    def _failure(self, what: str, status: int | None, text: str) -> EnvironmentError_:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        told = next((line for line in lines if _NO_SPACE in line), lines[-1] if lines else "")
        hint = f"free space in {self.base}" if _NO_SPACE in told else ""
        why = told or ("no answer" if status is None else f"exit status {status}")
        return EnvironmentError_(what, where=self.name, why=why, hint=hint)


def answers(text: str) -> dict[str, list[str]]:
    """The marked answers in a text, by name."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith(_MARK):
            name, _, value = line.removeprefix(_MARK).partition("=")
            found.setdefault(name, []).append(value.strip())
    return found


def start(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    """`run_briefly` with the whole text; a program that is not there is EnvironmentError_."""
    try:
        return run_briefly(command, seconds, whole=True)
    except OSError as error:
        raise EnvironmentError_(f"cannot start {command[0]}", why=str(error.strerror)) from error


class Remote(Machine):
    """A machine behind a connection.

    Args:
        pinned: how many of its fastest cores to keep to; 0 leaves the choice to its system.
    """

    def __init__(self, connection: Connection, built: Bundle, pinned: int = 0) -> None:
        self._to, self._bundle = connection, built
        self.name = connection.name
        self._pinning = (
            cores.fastest(connection.must(cores.QUERY, "read the cores' frequencies"), pinned, self.name)
            if pinned
            else None
        )

    def describe(self) -> dict[str, str]:
        return {**self._to.describe(), "power": cores.power_text(self._pinning)}

    def execute(
        self, folder: Path, arguments: Sequence[str], seconds: float, trace_to: Path | None
    ) -> tuple[int | None, str]:
        assert trace_to is None, "only an emulator logs what it executes"
        runner = self._bundle.command(self._install())
        with self._working_folder() as work:
            given = sorted(folder.iterdir())
            self._to.push(given, work)
            prefix = self._pinning.prefix if self._pinning else ()
            status, log = self._run(work, [*prefix, *runner, *arguments], seconds)
            listing = f'cd {work} && for file in *; do echo "{_MARK}file=$file"; done'
            names = answers(self._to.must(listing, "list the results"))["file"]
            made = [name for name in names if name not in {path.name for path in given}]
            if made:
                self._to.pull([f"{work}/{name}" for name in made], folder)
            return status, log

    def _run(self, work: str, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """The far end kills what exceeds the limit, so that nothing is left running there."""
        limited = ["timeout", "-s", "KILL", f"{int(seconds) + 1}", *command]
        started = time.monotonic()
        status, log = self._to.shell(f"cd {work} && {shlex.join(limited)}", seconds + _GRACE)
        return (None if time.monotonic() - started > seconds else status), log

    def _install(self) -> str:
        """Folder of the bundle there, copied unless this very one is there whole."""
        files = sorted((self._bundle.folder / "lib").iterdir())
        place = f"{self._to.base}/bundle-{self._bundle.content_hash()[:16]}"
        if self._to.shell(f"test -f {place}/complete", BRIEFLY)[0] != 0:
            self._to.must(f"rm -rf {place} && mkdir -p {place}/lib", f"create {place}")
            self._to.push([self._bundle.folder / RUNNER], place)
            self._to.push(files, f"{place}/lib")
            done = f"chmod 755 {place}/{RUNNER} {place}/{LOADER} && touch {place}/complete"
            self._to.must(done, f"finish {place}")
        return place

    @contextlib.contextmanager
    def _working_folder(self) -> Iterator[str]:
        work = f"{self._to.base}/run-{uuid.uuid4().hex}"
        self._to.must(f"mkdir -p {work}", f"create {work}")
        try:
            yield work
        finally:
            with contextlib.suppress(ArmdeployError):  # gone with the connection: that is told already
                self._to.shell(f"rm -rf {work}", BRIEFLY)

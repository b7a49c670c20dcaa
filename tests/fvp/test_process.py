# SPDX-License-Identifier: Apache-2.0
"""Programs in place of QEMU, dying and hanging ones: a typed error in time, and no process left."""

from __future__ import annotations

import struct
import tempfile
import time
from pathlib import Path

import pytest

from fvp.platform import Deadline
from fvp.virtual import tools
from fvp.virtual.gdb import GdbClient
from fvp.virtual.process import QemuProcess, run_briefly
from report.errors import EnvironmentError_, PlatformTimeout, RunFailed
from tests.fvp.guest import CODE, RAM, elf_of, needs_qemu

VERSION = 'if [ "$1" = --version ]; then echo "qemu-arm version {}"; exit 0; fi\n'


def script(folder: Path, body: str) -> Path:
    path = folder / "qemu-arm"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def processes_of(folder: Path) -> list[str]:
    """Command lines that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def left_behind(folder: Path, patience: float = 5) -> list[str]:
    """`processes_of`, once the kernel had time to end what was killed."""
    limit = time.monotonic() + patience
    while (found := processes_of(folder)) and time.monotonic() < limit:
        time.sleep(0.02)
    return found


def start(qemu: Path, folder: Path, seconds: float = 5) -> None:
    with QemuProcess(qemu, "cortex-m55", folder / "guest.elf", Deadline(seconds, "test")):
        pass


def test_program_that_exits_at_once(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="did not start: /bin/true ended with exit status 0 without a word"):
        start(Path("/bin/true"), tmp_path)


def test_program_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="ended with exit status 3, saying: no such thing"):
        start(script(tmp_path, "echo no such thing >&2; exit 3"), tmp_path)


def test_text_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(RunFailed, match=r"cannot start .*notes.txt: Permission denied"):
        start(path, tmp_path)
    path.chmod(0o755)
    with pytest.raises(RunFailed, match=r"did not start: .*notes.txt ended with exit status 127"):
        start(path, tmp_path)


def test_program_that_never_opens_its_port_is_ended_with_its_children(tmp_path: Path) -> None:
    begin = time.monotonic()
    body = f"sleep 1000 & exec sh -c 'sleep 1000; true' {tmp_path}"
    with pytest.raises(PlatformTimeout, match="did not open its debugger port"):
        start(script(tmp_path, body), tmp_path, seconds=0.3)
    assert time.monotonic() - begin < 3
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("exit 0", "ended with exit status 0, saying ''"),
        ("echo qemu-system-arm version 11.1.0", "saying 'qemu-system-arm version 11.1.0'"),
        ("echo oops >&2; exit 1", "ended with exit status 1, saying 'oops'"),
    ],
)
def test_program_that_is_no_qemu(
    tmp_path: Path, body: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(script(tmp_path, body)))
    with pytest.raises(RunFailed, match="is no qemu-arm") as caught:
        tools.require_qemu()
    assert message in caught.value.why


def test_version_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_VERSION_SECONDS", 0.2)
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(script(tmp_path, f"sh -c 'sleep 1000; true' {tmp_path}")))
    with pytest.raises(RunFailed, match="is still running"):
        tools.require_qemu()
    assert left_behind(tmp_path) == []


def test_old_qemu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = script(tmp_path, VERSION.format("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"))
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(old))
    with pytest.raises(EnvironmentError_, match=r"is QEMU 7\.2\.22; at least 10\.0 is needed"):
        tools.require_qemu()


def test_recent_qemu_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recent = script(tmp_path, VERSION.format("10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)"))
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(recent))
    assert tools.require_qemu() == recent
    assert tools.qemu_version(recent) == (10, 0, 13)


def test_missing_choice_is_an_error_and_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(tools.QEMU_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(EnvironmentError_, match=r"no qemu-arm at .*absent"):
        tools.require_qemu()


def test_brief_program() -> None:
    assert run_briefly(["/bin/sh", "-c", "echo out; echo err >&2; exit 4"], 5) == (4, "out\nerr\n")


@needs_qemu
def test_long_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket's path is limited to 108 bytes, a temporary folder's is not."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    image = tmp_path / "guest.elf"
    image.write_bytes(elf_of(struct.pack("<2I", RAM, CODE + 9) + bytes.fromhex("fee7")))
    image.chmod(0o755)
    with QemuProcess(tools.require_qemu(), "cortex-m55", image, Deadline(10)) as qemu:
        GdbClient(qemu.connection, Deadline(10)).handshake()
        assert qemu.memory.read(CODE + 8, 2) == bytes.fromhex("fee7")

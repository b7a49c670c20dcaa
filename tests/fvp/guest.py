# SPDX-License-Identifier: Apache-2.0
"""Small guests for tests: Thumb code assembled by GNU as, run under qemu-arm from a merged ELF."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fvp.platform import Deadline
from fvp.virtual import tools
from fvp.virtual.elf import merged_elf
from fvp.virtual.gdb import GdbClient
from fvp.virtual.process import QemuProcess

ASSEMBLER = "arm-none-eabi-gcc"
CODE, RAM, STAGING = 0x1000_0000, 0x2000_0000, 0x5FFF_F000
CODE_BYTES, RAM_BYTES, PAGE = 0x1_0000, 0x1_0000, 0x1000
HEAD = ".syntax unified\n.thumb\n.text\n"

needs_qemu = pytest.mark.skipif(tools.find_qemu() is None, reason="qemu-arm is not installed (setup.sh)")
needs_assembler = pytest.mark.skipif(
    shutil.which(ASSEMBLER) is None, reason=f"{ASSEMBLER} is not installed (setup.sh)"
)


def assemble(source: str, origin: int = CODE) -> bytes:
    """Machine code of Thumb `source` placed at `origin`."""
    with tempfile.TemporaryDirectory() as folder:
        text, elf, raw = (Path(folder) / name for name in ("a.s", "a.elf", "a.bin"))
        text.write_text(HEAD + source + "\n")
        link = ["-nostdlib", f"-Wl,-Ttext={origin:#x},-e,0", "-Wl,--build-id=none"]
        subprocess.run([ASSEMBLER, "-mcpu=cortex-m55", "-mthumb", *link, text, "-o", elf], check=True)
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", "-j", ".text", elf, raw], check=True)
        return raw.read_bytes()


def elf_of(code: bytes) -> bytes:
    """A guest with `code` at CODE (its first two words are the vector table), RAM and a staging page."""
    segments = [(CODE, code, CODE_BYTES), (RAM, b"", RAM_BYTES), (STAGING, b"", PAGE)]
    return merged_elf(CODE, segments)


@contextlib.contextmanager
def running(code: bytes, folder: Path, seconds: float = 20) -> Iterator[tuple[QemuProcess, GdbClient]]:
    """A guest stopped at its start, with a client that has shaken hands."""
    image = folder / "guest.elf"
    image.write_bytes(elf_of(code))
    image.chmod(0o755)
    deadline = Deadline(seconds, "test")
    with QemuProcess(tools.require_qemu(), "cortex-m55", image, deadline) as qemu:
        client = GdbClient(qemu.connection, deadline)
        client.handshake()
        yield qemu, client

# SPDX-License-Identifier: Apache-2.0
"""The emulator's log read back: blocks, classes of instructions, windows between calls of the clock."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fvp.aarch64.instructions import CLASSES, class_of
from fvp.aarch64.symbols import Symbols, read_maps
from fvp.aarch64.trace import TraceReader, by_symbol
from report.errors import RunFailed

NOP, MOV, STP, FMOPA, PTRUE, FMLA, BRANCH = (
    0xD503201F,
    0x910003E0,
    0xA9BE7BFD,
    0x80800000,
    0x2518E3E0,
    0x4E22CC20,
    0x14000000,
)
COUNTER = 0x7000


def shown(address: int, *words: int) -> str:
    """What QEMU prints when it translates a block."""
    lines = [f"{address + 4 * n:#014x}:  {word:08x}  text" for n, word in enumerate(words)]
    return "\n".join(["-" * 16, "IN: ", *lines, "", ""])


def executed(address: int, flags: int = 1) -> str:
    return f"Trace 0: 0x7f66{address:08x} [80081009331/{address:016x}/{flags:08x}/00000200] \n"


LOG = (
    shown(0x1000, MOV, STP)
    + executed(0x1000)
    + shown(COUNTER, MOV, BRANCH)
    + executed(COUNTER)
    + shown(0x2000, FMOPA, PTRUE, FMLA)
    + executed(0x2000)
    + executed(0x2000)
    + executed(COUNTER)
    + executed(0x1000)
)


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    path = tmp_path / "maps"
    path.write_text(f"1000-9000 r-xp 00000000 fe:00 1 /lib/x.so\ncounter {COUNTER:#x}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("piece", [1, 7, 100, 10_000])
def test_windows_hold_what_ran_between_two_calls_however_the_log_arrives(maps: Path, piece: int) -> None:
    reader = TraceReader(maps)
    data = LOG.encode()
    for at in range(0, len(data), piece):
        reader.feed(data[at : at + piece])
    trace = reader.finish()
    assert len(trace.windows) == 3
    assert trace.classes(trace.tally(0, 1)) == (0, 0, 0, 1, 0, 1, 0)
    assert trace.classes(trace.tally(1, 2)) == (2, 2, 2, 0, 1, 1, 0)  # two rounds, and the counter's own
    assert sum(trace.classes(trace.tally(0, 3))) == 2 + 2 + 6 + 2 + 2
    names = {index: hex(block.address) for index, block in enumerate(trace.blocks)}
    assert by_symbol(trace.blocks, trace.tally(1, 2), names) == {"0x2000": 6, hex(COUNTER): 2}


def test_a_block_translated_anew_in_another_mode_counts_with_its_new_length(maps: Path) -> None:
    reader = TraceReader(maps)
    again = shown(0x1000, MOV) + executed(0x1000, flags=2)
    reader.feed((LOG + again + executed(0x1000)).encode())
    trace = reader.finish()
    assert sum(trace.classes(trace.tally(2, 3))) == 2 + 2 + 1 + 2


def test_a_block_that_was_never_shown_and_a_clock_never_asked_fail(maps: Path) -> None:
    with pytest.raises(RunFailed, match="has not shown"):
        TraceReader(maps).feed(executed(0x5000).encode())
    reader = TraceReader(maps)
    reader.feed((shown(0x1000, MOV) + executed(0x1000)).encode())
    with pytest.raises(RunFailed, match="no call"):
        reader.finish()


@pytest.mark.parametrize(
    ("word", "name"),
    [
        (NOP, "branch and system"),
        (MOV, "integer"),
        (STP, "load and store"),
        (FMOPA, "sme"),
        (0xE1000000, "sme"),  # ldr za[w12, 0], [x0]
        (PTRUE, "sve"),
        (0x85804000, "sve"),  # ldr z0, [x0]
        (FMLA, "simd and fp"),
        (0x1F020C20, "simd and fp"),  # fmadd s0, s1, s2, s3
        (0x3DC00020, "load and store"),  # ldr q0, [x1]
        (0x8B020020, "integer"),
        (0xD503477F, "branch and system"),  # smstart
        (0x00000000, "reserved"),
    ],
)
def test_instruction_classes(word: int, name: str) -> None:
    assert CLASSES[class_of(word)] == name


def test_maps_keep_executable_files_only() -> None:
    text = "1000-2000 r-xp 00000100 fe:00 1 /a b.so\n3000-4000 rw-p 0 fe:00 1 /a b.so\n"
    text += "5000-6000 r-xp 0 0:0 0 [vdso]\n"
    assert [(m.start, m.end, m.offset, m.path) for m in read_maps(text)] == [
        (0x1000, 0x2000, 0x100, "/a b.so")
    ]


@pytest.mark.skipif(not shutil.which("nm"), reason="no nm to compare with")
def test_symbols_are_those_that_nm_prints() -> None:
    """On a library of this machine: every named function, looked up at its first and last byte."""
    library = next(path for path in map(Path, _libraries()) if path.is_file())
    text = subprocess.run(["nm", "-D", "-S", str(library)], capture_output=True, text=True, check=True).stdout
    wanted = re.findall(r"^([0-9a-f]{16}) ([0-9a-f]{16}) [TtWw] ([A-Za-z_]\w*)", text, re.MULTILINE)
    header = subprocess.run(
        ["readelf", "-lW", str(library)], capture_output=True, text=True, check=True
    ).stdout
    segment = re.search(r"LOAD\s+(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ R E", header)
    assert segment is not None and len(wanted) > 50
    offset, address, size = (int(number, 16) for number in segment.groups())
    symbols = Symbols(f"{0x10000:x}-{0x10000 + size:x} r-xp {offset:08x} fe:00 1 {library}\n")
    starts: dict[str, set[str]] = {}
    for start, _, name in wanted:
        starts.setdefault(start, set()).add(name)
    for start, _, _ in wanted[:200]:
        assert symbols.name(int(start, 16) - address + 0x10000) in starts[start]
    assert symbols.name(0x10) == "outside of every file"


def _libraries() -> list[str]:
    text = Path("/proc/self/maps").read_text(encoding="utf-8")
    return sorted({m.path for m in read_maps(text) if re.search(r"/libm\.so", m.path)})

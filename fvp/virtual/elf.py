# SPDX-License-Identifier: Apache-2.0
"""One ELF for a firmware and its board: the image's contents plus every memory and constant page.

QEMU's user mode maps exactly the segments of the ELF it starts, so the board's memory map is written as
segments. The result depends on the firmware and the board table alone and is cached on disk, with the symbols
beside it; model and inputs are put into the running guest.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fvp.virtual.boards import PAGE, Board
from fvp.virtual.relocate import Code, relocate
from fvp.virtual.tools import cache_dir
from fvp.virtual.traps import PERMANENTLY_UNDEFINED, trap_sites
from report.errors import EnvironmentError_

_FORMAT = 4
"""Part of the cache key; counts changes of what is stored."""

_KEPT = 64
"""Merged ELFs that stay in the cache."""

_VECTOR_TABLES = ("__Vectors", "__vectors", "__isr_vector", "__vector_table", "g_pfnVectors")
"""Names by which start-up code calls its vector table."""

_EHDR = struct.Struct("<16sHHIIIIIHHHHHH")
_PHDR = struct.Struct("<8I")
_SYMBOL = struct.Struct("<IIIBBH")
_STT_NOTYPE, _STT_OBJECT, _STT_FUNC = 0, 1, 2
_SHN_LORESERVE = 0xFF00
_SHF_EXECINSTR = 4
_ET_EXEC, _EM_ARM, _PT_LOAD, _RWX, _EF_ARM_EABI5 = 2, 40, 1, 7, 0x0500_0000


@dataclass(frozen=True)
class Image:
    """A firmware made ready for one board.

    Attributes:
        path: the merged ELF.
        source: the firmware it was made from.
        sha256: hash of `source`.
        vectors: address of the vector table.
        symbols: address by name (bit 0 cleared), functions and data.
        entry: the ELF's entry point, for an image without a vector table.
        traps: halfword of every instruction that QEMU would take for itself, by address; see `traps`.
    """

    path: Path
    source: Path
    sha256: str
    vectors: int
    symbols: Mapping[str, int]
    entry: int = 0
    traps: Mapping[int, int] = field(default_factory=dict)

    def extent(self, address: int) -> int:
        """Bytes from `address` to the next symbol."""
        return min((other for other in self.symbols.values() if other > address), default=address) - address

    def describe(self, address: int) -> str:
        """``0x12005f58 (_write+0x12)``: an address with the symbol before it, for messages."""
        addresses, names = self._by_address
        place = bisect.bisect_right(addresses, address) - 1
        if place < 0 or address - addresses[place] > 64 * 1024:
            return f"{address:#010x}"
        offset = address - addresses[place]
        return f"{address:#010x} ({names[place]}{f'+{offset:#x}' if offset else ''})"

    @functools.cached_property
    def _by_address(self) -> tuple[list[int], list[str]]:
        pairs = sorted((address, name) for name, address in self.symbols.items())
        return [address for address, _ in pairs], [name for _, name in pairs]


@dataclass(frozen=True)
class Firmware:
    """What is needed of a firmware ELF: contents by load address, code ranges, symbols, entry point.

    `run_offsets` has, for every range of `code`, its run address minus its load address.
    """

    contents: tuple[tuple[int, bytes], ...]
    code: tuple[Code, ...]
    run_offsets: tuple[int, ...]
    symbols: Mapping[str, int]
    entry: int


def prepare(firmware: Path, board: Board) -> Image:
    """The merged ELF of `firmware` on `board`, from the cache or made now (about 1.5 s).

    Raises:
        EnvironmentError_: the firmware is not usable on the board, or the cache folder is not writable.
    """
    stat = firmware.stat()
    key = repr((_FORMAT, str(firmware.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ino, board))
    folder = cache_dir() / "virtual"
    stem = f"{board.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    path, index = folder / f"{stem}.elf", folder / f"{stem}.json"
    facts = _cached(path, index) or _make(firmware, board, path, index)
    traps = {int(address): halfword for address, halfword in facts["traps"].items()}
    return Image(path, firmware, facts["sha256"], facts["vectors"], facts["symbols"], facts["entry"], traps)


def _cached(path: Path, index: Path) -> dict[str, Any] | None:
    """What is known of the merged ELF at `path`, None if it has to be made."""
    try:
        facts = json.loads(index.read_text())
        os.utime(index)
        return facts if path.stat().st_size == facts["size"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _make(firmware: Path, board: Board, path: Path, index: Path) -> dict[str, Any]:
    parsed = read_firmware(firmware)
    sites = trap_sites(parsed.contents, parsed.code)
    contents = relocate(_trapped(parsed.contents, sites), parsed.code, board)
    vectors = _vectors(parsed, board)
    elf = merged_elf(vectors, _segments(contents, board, firmware), parsed.entry)
    facts = {
        "source": str(firmware),
        "size": len(elf),
        "sha256": hashlib.sha256(firmware.read_bytes()).hexdigest(),
        "vectors": vectors,
        "symbols": parsed.symbols,
        "entry": parsed.entry,
        "traps": sites | _at_run_addresses(sites, parsed),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, elf)
        _replace(index, json.dumps(facts).encode())
        _prune(path.parent)
        return json.loads(json.dumps(facts))
    except OSError as error:
        raise EnvironmentError_(
            f"cannot write {path.parent}",
            where="virtual",
            why=str(error.strerror),
            hint="set ARMDEPLOY_CACHE",
        ) from error


def _trapped(contents: Iterable[tuple[int, bytes]], sites: Mapping[int, int]) -> list[tuple[int, bytes]]:
    """`contents` with the instruction at every site replaced by one that stops the guest."""
    out = [(address, bytearray(data)) for address, data in contents]
    for address, data in out:
        for site in sites:
            if address <= site < address + len(data):
                data[site - address + 1] = PERMANENTLY_UNDEFINED
    return [(address, bytes(data)) for address, data in out]


def _at_run_addresses(sites: Mapping[int, int], parsed: Firmware) -> dict[int, int]:
    """The sites that start-up code copies elsewhere, by the addresses they run at."""
    moved = {}
    for code, offset in zip(parsed.code, parsed.run_offsets, strict=True):
        if offset:
            moved.update({a + offset: h for a, h in sites.items() if code.start <= a < code.end})
    return moved


def _vectors(parsed: Firmware, board: Board) -> int:
    """Address of the vector table: by name, else where the board has it, else the lowest address."""
    for name in _VECTOR_TABLES:
        if name in parsed.symbols:
            return parsed.symbols[name]
    if any(address <= board.vectors < address + len(data) for address, data in parsed.contents):
        return board.vectors
    return min((address for address, _ in parsed.contents), default=0)


def _prune(folder: Path) -> None:
    """Keep the merged ELFs that were used last."""
    used = sorted(folder.glob("*.json"), key=lambda index: index.stat().st_mtime_ns, reverse=True)
    for index in used[_KEPT:]:
        index.with_suffix(".elf").unlink(missing_ok=True)
        index.unlink(missing_ok=True)


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or none."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(handle, 0o755)  # QEMU refuses a file without execute permission
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_firmware(path: Path) -> Firmware:
    """Parse a firmware ELF with pyelftools.

    Raises:
        EnvironmentError_: no 32-bit little-endian Arm ELF, or one without a vector table.
    """
    from elftools.common.exceptions import ELFError  # slow to import; needed only when the cache is cold
    from elftools.elf.elffile import ELFFile

    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf.get_machine_arch() != "ARM" or elf.elfclass != 32 or not elf.little_endian:
                raise EnvironmentError_(f"{path} is no 32-bit little-endian Arm ELF", where="virtual")
            return _parse(elf)
    except (ELFError, ValueError, struct.error) as error:
        raise EnvironmentError_(f"{path} is no usable ELF", where="virtual", why=str(error)) from error


def _parse(elf) -> Firmware:  # pyelftools ships no types
    segments = [segment for segment in elf.iter_segments("PT_LOAD") if segment["p_filesz"]]
    contents = tuple((segment["p_paddr"], segment.data()) for segment in segments)
    shifts = [(s["p_vaddr"], s["p_vaddr"] + s["p_memsz"], s["p_paddr"] - s["p_vaddr"]) for s in segments]
    symbols: dict[str, int] = {}
    marks: dict[int, list[tuple[int, str]]] = {}
    for name, address, kind, section in _symbols(elf):
        if name.startswith("$"):
            marks.setdefault(section, []).append((address, name[:2]))
        elif kind in (_STT_NOTYPE, _STT_OBJECT, _STT_FUNC):
            symbols[name] = address & ~1 if kind == _STT_FUNC else address
    code = [
        (Code(start + shift, end + shift, kind == "$t"), -shift)
        for section, items in marks.items()
        for start, end, kind in _ranges(items, elf.get_section(section))
        for shift in _shift(shifts, start)
    ]
    offsets = tuple(offset for _, offset in code)
    return Firmware(contents, tuple(item for item, _ in code), offsets, symbols, elf["e_entry"])


def _symbols(elf) -> Iterator[tuple[str, int, int, int]]:
    """Name, value, type and section of every defined, named symbol.

    Unpacked here because pyelftools takes seconds for the 20,000 symbols of a firmware.
    """
    table = elf.get_section_by_name(".symtab")
    if table is None:
        return
    names = elf.get_section(table["sh_link"]).data()
    for name, value, _, info, _, section in _SYMBOL.iter_unpack(table.data()):
        if name and 0 < section < _SHN_LORESERVE:
            text = names[name : names.index(b"\0", name)]
            yield text.decode("utf-8", "replace"), value, info & 15, section


def _shift(shifts: Iterable[tuple[int, int, int]], address: int) -> Iterable[int]:
    """Load address minus run address, for addresses inside a loaded segment."""
    return (shift for start, end, shift in shifts if start <= address < end)


def _ranges(marks: list[tuple[int, str]], section) -> Iterable[tuple[int, int, str]]:
    """Stretches of Thumb code (``$t``) and of literals (``$d``) of one executable section."""
    if not section["sh_flags"] & _SHF_EXECINSTR:
        return
    ordered = sorted(marks)
    ends = [address for address, _ in ordered[1:]] + [section["sh_addr"] + section["sh_size"]]
    for (start, kind), end in zip(ordered, ends, strict=True):
        if start < end:
            yield start, end, kind


def _segments(
    contents: Iterable[tuple[int, bytes]], board: Board, firmware: Path
) -> list[tuple[int, bytes, int]]:
    """(address, initialised bytes, size) of every memory and page of the board, firmware filled in."""
    filled = {memory.base: bytearray() for memory in board.memories}
    for address, data in contents:
        memory = next((m for m in board.memories if m.base <= address and address + len(data) <= m.end), None)
        if memory is None:
            raise EnvironmentError_(
                f"{firmware} does not fit {board.name}",
                where="virtual",
                why=f"{len(data)} bytes at {address:#010x} are in none of its memories",
            )
        image, offset = filled[memory.base], address - memory.base
        image.extend(bytes(max(0, offset + len(data) - len(image))))
        image[offset : offset + len(data)] = data
    segments = [(memory.base, bytes(filled[memory.base]), memory.size) for memory in board.memories]
    for page in board.pages:
        words = bytearray(PAGE)
        for offset, value in page.words.items():
            struct.pack_into("<I", words, offset, value)
        segments += [(base, bytes(words), PAGE) for base in page.bases]
    return [*segments, (board.staging, b"", PAGE)]


def merged_elf(vectors: int, segments: Sequence[tuple[int, bytes, int]], entry: int = 0) -> bytes:
    """An executable ELF of page-aligned writable segments (address, initialised bytes, size).

    The entry point is the reset handler, read from the vector table; `entry` where that has no Thumb address.
    """
    out = bytearray(-(-(_EHDR.size + _PHDR.size * len(segments)) // PAGE) * PAGE)
    headers = bytearray()
    reset = 0
    for address, data, size in sorted(segments):
        if address <= vectors < address + len(data):
            reset = struct.unpack_from("<I", data, vectors - address + 4)[0]
        headers += _PHDR.pack(_PT_LOAD, len(out), address, address, len(data), size, _RWX, PAGE)
        out += data
        out += bytes(-len(out) % PAGE)
    reset = reset if reset & 1 else entry
    ident = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    sizes = (_EHDR.size, _PHDR.size, len(segments), 0, 0, 0)
    out[: _EHDR.size] = _EHDR.pack(ident, _ET_EXEC, _EM_ARM, 1, reset, _EHDR.size, 0, _EF_ARM_EABI5, *sizes)
    out[_EHDR.size : _EHDR.size + len(headers)] = headers
    return bytes(out)

# SPDX-License-Identifier: Apache-2.0
"""Names of executed addresses: a process's memory map and the dynamic symbols of the files in it.

The wheel's libraries are stripped, but their dynamic symbols name every KleidiAI kernel. Functions without a
name are called ``local in FILE``.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from report.errors import RunFailed

_EXECUTABLE = 0x1
_UNKNOWN = "outside of every file"


@dataclass(frozen=True)
class Mapping_:
    """One executable mapping: addresses `start` to `end` hold the file from `offset`."""

    start: int
    end: int
    offset: int
    path: str


def read_maps(text: str) -> list[Mapping_]:
    """The executable mappings of files in the text of ``/proc/PID/maps``, by address."""
    found = []
    for line in text.splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and "x" in words[1] and words[5].startswith("/"):
            start, end = (int(number, 16) for number in words[0].split("-"))
            found.append(Mapping_(start, end, int(words[2], 16), words[5]))
    return sorted(found, key=lambda mapping: mapping.start)


class _File:
    """Functions of one ELF file by virtual address, and where its bytes go."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as stream:
            elf = ELFFile(stream)
            self.segments = [
                (s["p_offset"], s["p_filesz"], s["p_vaddr"])
                for s in elf.iter_segments("PT_LOAD")
                if s["p_flags"] & _EXECUTABLE
            ]
            tables = [s for s in elf.iter_sections() if isinstance(s, SymbolTableSection)]
            symbols = sorted(
                (s["st_value"], s["st_size"], s.name)
                for table in tables
                for s in table.iter_symbols()
                if s["st_info"]["type"] == "STT_FUNC" and s["st_value"]
            )
        self.name, self.symbols = path.name, symbols
        self.starts = [value for value, _, _ in symbols]

    def function(self, offset: int) -> str:
        """Name of the function at an offset into the file."""
        for start, size, address in self.segments:
            if start <= offset < start + size:
                return self._at(offset - start + address)
        return f"local in {self.name}"

    def _at(self, address: int) -> str:
        at = bisect.bisect_right(self.starts, address) - 1
        if at >= 0:
            value, size, name = self.symbols[at]
            if address < value + size:
                return name
        return f"local in {self.name}"


class Symbols:
    """Function names for the addresses of one process.

    Args:
        maps: text of its ``/proc/PID/maps``.

    Raises:
        RunFailed: a mapped file is gone or no ELF file.
    """

    def __init__(self, maps: str) -> None:
        self._maps = read_maps(maps)
        self._starts = [mapping.start for mapping in self._maps]
        self._files: dict[str, _File] = {}

    def name(self, address: int) -> str:
        """The function that `address` is in."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._maps[at].end:
            return _UNKNOWN
        mapping = self._maps[at]
        return self._file(mapping.path).function(address - mapping.start + mapping.offset)

    def _file(self, path: str) -> _File:
        if path not in self._files:
            try:
                self._files[path] = _File(Path(path))
            except (OSError, ELFError) as error:
                raise RunFailed("cannot read a file of the runner", where=path, why=str(error)) from error
        return self._files[path]

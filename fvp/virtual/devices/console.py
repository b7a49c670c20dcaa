# SPDX-License-Identifier: Apache-2.0
"""The console text of a run, whether it comes through a UART's register or an intercepted ``write``."""

from __future__ import annotations

import codecs
import sys
from typing import TextIO

END_OF_TRANSMISSION = 0x04
"""Byte with which firmware ends a run (the FVP's ``uart0.shutdown_on_eot``)."""


class Console:
    """Collects console bytes.

    Args:
        echo: where every byte also goes as it comes, None for nowhere.
        end_byte: UART byte that ends the run, None for none.
        end_text: UART text that ends the run when a line has it; empty for none.
    """

    def __init__(
        self, echo: TextIO | None = None, end_byte: int | None = END_OF_TRANSMISSION, end_text: str = ""
    ) -> None:
        self._bytes = bytearray()
        self._echo = echo
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._end_byte, self._end_text = end_byte, end_text.encode()
        self.ended = False

    @classmethod
    def for_run(cls, verbose: bool) -> Console:
        """A console that is echoed to standard error when the run is `verbose`."""
        return cls(sys.stderr if verbose else None)

    def put(self, data: bytes) -> None:
        """Take UART output; what follows the end mark is dropped."""
        if self.ended:
            return
        if self._end_byte is not None:
            data, end, _ = data.partition(bytes([self._end_byte]))
            self.ended = bool(end)
        before = len(self._bytes)
        self.put_text(data)
        if self._end_text and self._bytes.find(self._end_text, max(before - len(self._end_text), 0)) >= 0:
            self.ended = True

    def put_text(self, data: bytes) -> None:
        """Take output that carries no end mark, such as semihosting's."""
        text = data.replace(b"\r", b"")
        self._bytes += text
        if self._echo is not None:
            self._echo.write(self._decoder.decode(text))
            self._echo.flush()

    @property
    def text(self) -> str:
        """Everything so far; carriage returns are left out."""
        return self._bytes.decode("utf-8", "replace")

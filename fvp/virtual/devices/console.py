# SPDX-License-Identifier: Apache-2.0
"""The console text of a run, whether it comes through a UART's register or an intercepted ``write``."""

from __future__ import annotations

import sys
from typing import TextIO

END_OF_TRANSMISSION = 0x04
"""Byte with which firmware ends a run (the FVP's ``uart0.shutdown_on_eot``)."""


class Console:
    """Collects console bytes.

    Args:
        echo: where every byte also goes as it comes, None for nowhere.
    """

    def __init__(self, echo: TextIO | None = None) -> None:
        self._bytes = bytearray()
        self._echo = echo
        self.ended = False

    @classmethod
    def for_run(cls, verbose: bool) -> Console:
        """A console that is echoed to standard error when the run is `verbose`."""
        return cls(sys.stderr if verbose else None)

    def put(self, data: bytes) -> None:
        """Take console output; what follows the end of transmission is dropped."""
        if self.ended:
            return
        text, end, _ = data.partition(bytes([END_OF_TRANSMISSION]))
        text = text.replace(b"\r", b"")
        self._bytes += text
        self.ended = bool(end)
        if self._echo is not None:
            self._echo.write(text.decode("utf-8", "replace"))
            self._echo.flush()

    @property
    def text(self) -> str:
        """Everything so far; carriage returns are left out."""
        return self._bytes.decode("utf-8", "replace")

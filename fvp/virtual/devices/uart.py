# SPDX-License-Identifier: Apache-2.0
"""CMSDK APB UART (Cortex-M System Design Kit, chapter 4.3): transmit only, never full."""

from __future__ import annotations

from fvp.virtual.devices.console import Console

DATA, STATE, CTRL, INTSTATUS, BAUDDIV = 0x00, 0x04, 0x08, 0x0C, 0x10
_ID = {
    0xFD0: 0x04, 0xFE0: 0x21, 0xFE4: 0xB8, 0xFE8: 0x1B, 0xFF0: 0x0D, 0xFF4: 0xF0, 0xFF8: 0x05, 0xFFC: 0xB1,
}  # fmt: skip


class CmsdkUart:
    """Sends what is written to DATA to the console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._registers = {CTRL: 0, BAUDDIV: 0}

    def read(self, offset: int, size: int) -> int:
        """CTRL and BAUDDIV as written, identification, else 0 (STATE: nothing received, room to send)."""
        return self._registers.get(offset, _ID.get(offset, 0))

    def write(self, offset: int, size: int, value: int) -> None:
        """Send a byte, or keep a setting."""
        if offset == DATA:
            self._console.put(bytes([value & 0xFF]))
        elif offset in self._registers:
            self._registers[offset] = value

# SPDX-License-Identifier: Apache-2.0
"""Timing adapters in front of the NPU's memory ports: registers of their driver, settings kept.

The adapters shape bandwidth and latency on the FPGA and the FVP. Nothing here waits for them; the settings
are kept so that firmware can read them back and a cycle model can ask for them.
"""

from __future__ import annotations

VERSION, VERSION_VALUE = 0x38, 0x1117
_INSTANCE_BYTES = 0x40


class TimingAdapters:
    """One page with some adapters, each of 64 bytes; only VERSION is not writable."""

    def __init__(self) -> None:
        self.registers: dict[int, int] = {}

    def read(self, offset: int, size: int) -> int:
        """The value last written, 0 before; VERSION reads as the revision that drivers expect."""
        if offset % _INSTANCE_BYTES == VERSION:
            return VERSION_VALUE
        return self.registers.get(offset, 0)

    def write(self, offset: int, size: int, value: int) -> None:
        """Keep a setting."""
        self.registers[offset] = value

# SPDX-License-Identifier: Apache-2.0
"""Timing adapters in front of the NPU's memory ports: registers of their driver, settings kept.

The adapters shape bandwidth and latency on the FPGA and the FVP. Nothing here waits for them; the settings
are kept so that firmware can read them back and the cycle model can ask for them.
"""

from __future__ import annotations

from npu.timing import PROFILES, PortTiming, TimingProfile

VERSION, VERSION_VALUE = 0x38, 0x1117
_INSTANCE_BYTES = 0x40
_SETTINGS = {
    "maxr": 0x00,
    "maxw": 0x04,
    "rlatency": 0x0C,
    "wlatency": 0x10,
    "pulse_on": 0x14,
    "pulse_off": 0x18,
    "bwcap": 0x1C,
}
"""Offsets of the settings that `npu.timing` knows, as in the driver's register structure."""


class TimingAdapters:
    """One page with some adapters, each of 64 bytes; only VERSION is not writable.

    Args:
        default: memory timing while firmware has not programmed any.
    """

    def __init__(self, default: TimingProfile = PROFILES["none"]) -> None:
        self._default = default
        self.registers: dict[int, int] = {}

    def read(self, offset: int, size: int) -> int:
        """The value last written, 0 before; VERSION reads as the revision that drivers expect."""
        if offset % _INSTANCE_BYTES == VERSION:
            return VERSION_VALUE
        return self.registers.get(offset, 0)

    def profile(self) -> TimingProfile:
        """The settings now: the first adapter is in front of SRAM (AXI0), the other of EXT (AXI1)."""
        if not self.registers:
            return self._default
        second = min((offset for offset in self.registers if offset >= _INSTANCE_BYTES), default=0)
        second -= second % _INSTANCE_BYTES
        return TimingProfile("programmed", self._port(0), self._port(second) if second else PortTiming())

    def _port(self, base: int) -> PortTiming:
        return PortTiming(**{name: self.registers.get(base + at, 0) for name, at in _SETTINGS.items()})

    def write(self, offset: int, size: int, value: int) -> None:
        """Keep a setting."""
        self.registers[offset] = value

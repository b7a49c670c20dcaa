# SPDX-License-Identifier: Apache-2.0
"""The bus: finds the device at an address."""

from __future__ import annotations

from fvp.virtual.boards import PAGE, DeviceSlot
from fvp.virtual.devices.base import Device


class UnmappedAddress(Exception):
    """Nothing answers at `address`."""

    def __init__(self, address: int) -> None:
        super().__init__(f"nothing is at {address:#010x}")
        self.address = address


class Bus:
    """Routes accesses by 4 KiB page."""

    def __init__(self) -> None:
        self._pages: dict[int, tuple[int, Device]] = {}

    def attach(self, slot: DeviceSlot, device: Device) -> None:
        """Make `device` answer at every base of `slot`."""
        for base in slot.bases:
            for page in range(base // PAGE, (base + slot.size) // PAGE):
                self._pages[page] = base, device

    def read(self, address: int, size: int) -> int:
        """Load from a device.

        Raises:
            UnmappedAddress: no device is there.
        """
        base, device = self._find(address)
        return device.read(address - base, size)

    def write(self, address: int, size: int, value: int) -> None:
        """Store to a device; raises like `read`."""
        base, device = self._find(address)
        device.write(address - base, size, value)

    def _find(self, address: int) -> tuple[int, Device]:
        try:
            return self._pages[address // PAGE]
        except KeyError:
            raise UnmappedAddress(address) from None

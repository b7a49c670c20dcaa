# SPDX-License-Identifier: Apache-2.0
"""The timing adapters tell the cycle model what firmware has programmed."""

from __future__ import annotations

import pytest

from fvp.virtual.devices.timing_adapter import TimingAdapters
from npu.config import npu_config
from npu.timing import PROFILES, PortTiming, default_profile

# As Arm's driver lays out an adapter: MAXR, MAXW, MAXRW, RLATENCY, WLATENCY, PULSE_ON, PULSE_OFF, BWCAP.
SRAM = (8, 8, 0, 32, 32, 3999, 1, 4000)
EXT = (24, 12, 0, 250, 125, 4000, 1000, 2344)


@pytest.mark.parametrize("second", [0x200, 0x800], ids=["corstone-300", "corstone-320"])
def test_profile(second: int) -> None:
    adapters = TimingAdapters(PROFILES["none"])
    for base, values in ((0, SRAM), (second, EXT)):
        for index, value in enumerate(values):
            adapters.write(base + 4 * index, 4, value)
    profile = adapters.profile()
    assert profile.sram == PortTiming(8, 8, 32, 32, 3999, 1, 4000)
    assert profile.ext == PortTiming(24, 12, 250, 125, 4000, 1000, 2344)
    assert adapters.read(second + 0x1C, 4) == 2344


def test_nothing_programmed() -> None:
    default = default_profile(npu_config("ethos-u85-256"))
    adapters = TimingAdapters(default)
    assert adapters.profile() is default
    adapters.write(0x0C, 4, 16)
    assert adapters.profile().sram == PortTiming(rlatency=16)
    assert adapters.profile().ext == PortTiming()

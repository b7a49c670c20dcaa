# SPDX-License-Identifier: Apache-2.0
"""The NPU's view of guest memory must behave like plain arrays, whatever regions overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fvp.virtual.boards import Memory
from fvp.virtual.devices.npu import EthosU, SystemMemory
from npu.config import npu_config
from npu.errors import BusError
from npu.registers import Cmd, Reg, Status

RAMS = (Memory("a", 0x1000_0000, 0x3_0000), Memory("b", 0x2000_0000, 0x1_8000))


class Guest:
    """The guest's memory as two arrays; counts what is moved."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.arrays = {ram.base: rng.integers(0, 256, ram.size, np.uint8) for ram in RAMS}
        self.read_bytes = self.written_bytes = 0

    def _find(self, address: int) -> tuple[np.ndarray, int]:
        ram = next(ram for ram in RAMS if ram.base <= address < ram.end)
        return self.arrays[ram.base], address - ram.base

    def read_array(self, address: int, size: int) -> np.ndarray:
        array, start = self._find(address)
        assert start + size <= array.size
        self.read_bytes += size
        return array[start : start + size].copy()

    def write(self, address: int, data: np.ndarray) -> None:
        array, start = self._find(address)
        array[start : start + data.size] = data
        self.written_bytes += data.size


BASES = (0x1000_0000, 0x1000_8000, 0x2000_0000, 0x2001_0000, 0, 0, 0, 0)
ACCESSES = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "window"]),
        st.integers(0, 3),
        st.integers(0, 0x7000),
        st.integers(1, 0x900),
    ),
    max_size=25,
)


@given(ACCESSES)
def test_equals_plain_arrays(accesses: list[tuple[str, int, int, int]]) -> None:
    guest, plain = Guest(), Guest()
    system = SystemMemory(RAMS, guest, int)
    regions = system.regions(BASES)
    for number, (kind, region, offset, size) in enumerate(accesses):
        data = np.full(size, number, np.uint8)
        if kind == "read":
            assert np.array_equal(
                regions.read(region, offset, size), plain.read_array(BASES[region] + offset, size)
            )
        elif kind == "write":
            regions.write(region, offset, data)
            plain.write(BASES[region] + offset, data)
        else:
            regions.window(region, offset, size)[::2] = data[::2]
            expected = plain.read_array(BASES[region] + offset, size)
            expected[::2] = data[::2]
            plain.write(BASES[region] + offset, expected)
    system.flush()
    assert all(np.array_equal(guest.arrays[base], plain.arrays[base]) for base in plain.arrays)


def test_cpu_stores_between_jobs_are_seen() -> None:
    guest = Guest()
    system = SystemMemory(RAMS, guest, int)
    system.regions(BASES).read(0, 0, 16)
    system.flush()
    guest.write(0x1000_0000, np.full(16, 7, np.uint8))
    assert system.regions(BASES).read(0, 0, 16).tolist() == [7] * 16


def test_only_what_is_stored_goes_back() -> None:
    guest = Guest()
    system = SystemMemory(RAMS, guest, int)
    regions = system.regions(BASES)
    for start in (100, 110, 0x2_0000, 120):
        regions.write(0, start, np.zeros(10, np.uint8))
    system.flush()
    assert guest.written_bytes == 40
    assert guest.read_bytes == 2 << 16, "the two chunks touched"


@pytest.mark.parametrize(
    ("region", "offset", "size"),
    [(0, 0x3_0000 - 4, 8), (0, -1, 4), (2, 0x1_8000, 1), (5, 0, 4), (0, 1 << 40, 1)],
)
def test_outside_the_memories_is_a_bus_error(region: int, offset: int, size: int) -> None:
    regions = SystemMemory(RAMS, Guest(), int).regions(BASES)
    with pytest.raises(BusError) as caught:
        regions.read(region, offset, size)
    assert (caught.value.region, caught.value.address, caught.value.size) == (region, offset, size)


def test_job_with_a_bad_queue_address_sets_the_bus_error_and_interrupts() -> None:
    levels: list[bool] = []
    device = EthosU(npu_config("ethos-u55-128"), SystemMemory(RAMS, Guest(), int), levels.append)
    device.write(Reg.QBASE_LO, 4, 0x3000_0000)
    device.write(Reg.QSIZE, 4, 64)
    device.write(Reg.CMD, 4, Cmd.RUN)
    assert levels[-1] is True and device.read(Reg.STATUS, 4) & Status.BUS_ERROR
    assert isinstance(device.jobs[0].fault, BusError) and device.jobs[0].result is None
    device.write(Reg.CMD, 4, Cmd.CLEAR_IRQ)
    assert levels[-1] is False


def test_job_that_takes_too_long_is_ended_by_its_next_access() -> None:
    def late() -> None:
        raise TimeoutError

    system = SystemMemory(RAMS, Guest(), late)
    with pytest.raises(TimeoutError):
        system.regions(BASES).read(0, 0, 1)

# SPDX-License-Identifier: Apache-2.0
"""The register block, driven as Arm's driver drives it."""

from __future__ import annotations

import golden
import numpy as np
import pytest

from npu import stream
from npu.config import NpuConfig, npu_config
from npu.container import parse_velabin
from npu.device import RegisterBlock
from npu.errors import BusError, NpuError, StreamError
from npu.memory import ArrayMemory
from npu.registers import Reg, Status

QUEUE = 0x6000_0000
BASES = (0x1_0000_0000, 0x6400_0000, 0x3100_0000)
VICTIMS = {
    "U55": "conv3x3_stride2_shallow__ethos-u55-128",
    "U65": "conv3x3_stride2_shallow__ethos-u65-512",
    "U85": golden.CORRUPTIBLE,
}


class Host:
    """Memory of a job and the command queue at QUEUE."""

    def __init__(self, case: golden.Golden):
        self.vela = parse_velabin(case.container)
        self.case = case
        self.scratch = np.zeros(self.vela.scratch_size, np.uint8)
        self.commands = self.vela.cmd_data[stream.parse(self.vela.cmd_data).base_offset :]
        self.bases: tuple[int, ...] = ()
        for spec, array in zip(self.vela.inputs, case.inputs, strict=True):
            self.scratch[spec.offset : spec.offset + spec.size] = np.frombuffer(array.tobytes(), np.uint8)

    def memory(self, bases: tuple[int, ...]) -> ArrayMemory:
        self.bases = bases
        weights = np.frombuffer(self.vela.weight_data, np.uint8)
        return ArrayMemory({0: weights, 1: self.scratch, 2: np.zeros(384 * 1024, np.uint8)})

    def fetch(self, address: int, size: int) -> bytes:
        if address != QUEUE:
            raise BusError(0, address, size)
        return self.commands[:size]

    def output_is_right(self) -> bool:
        spec, want = self.vela.outputs[0], self.case.outputs[0]
        return self.scratch[spec.offset : spec.offset + spec.size].tobytes() == want.tobytes()


def start(block: RegisterBlock, size: int, queue: int = QUEUE) -> None:
    """The driver's sequence from soft reset to the start of a job."""
    block.write32(Reg.RESET, 1)
    assert not block.read32(Reg.STATUS) & Status.RESET_ACTIVE
    assert block.read32(Reg.PROT) == 1
    block.write32(Reg.QCONFIG, 3)
    block.write32(Reg.REGIONCFG, 0x1F)
    block.write32(Reg.QBASE_LO, queue & 0xFFFFFFFF)
    block.write32(Reg.QBASE_HI, queue >> 32)
    block.write32(Reg.QSIZE, size)
    for index, base in enumerate(BASES):
        block.write32(Reg.BASEP + 8 * index, base & 0xFFFFFFFF)
        block.write32(Reg.BASEP + 8 * index + 4, base >> 32)
    assert not block.irq
    block.write32(Reg.CMD, block.read32(Reg.CMD) & 0xC | 1)


def make(victim: str) -> tuple[RegisterBlock, Host]:
    case = golden.load(victim)
    host = Host(case)
    return RegisterBlock(npu_config(case.npu), host.memory, host.fetch), host


@pytest.mark.parametrize("victim", VICTIMS.values(), ids=VICTIMS)
def test_job(victim: str) -> None:
    block, host = make(victim)
    start(block, len(host.commands))
    assert block.irq
    assert block.read32(Reg.STATUS) == 0xFFFF << 16 | Status.IRQ_RAISED | Status.CMD_END_REACHED
    assert block.read32(Reg.QREAD) == len(host.commands)
    assert host.bases[:3] == BASES
    assert block.fault is None
    assert block.result is not None and block.result.macs > 0
    assert host.output_is_right()
    block.write32(Reg.CMD, 2 | block.read32(Reg.CMD) & 0xC)
    assert not block.irq
    assert block.read32(Reg.STATUS) == 0xFFFF << 16 | Status.CMD_END_REACHED
    block.write32(Reg.CMD, 0xFFFF << 16 | 0xC)
    assert block.read32(Reg.STATUS) == Status.CMD_END_REACHED


@pytest.mark.parametrize("victim", VICTIMS.values(), ids=VICTIMS)
def test_identity(victim: str) -> None:
    block, _ = make(victim)
    config: NpuConfig = block.config
    assert block.read32(Reg.CONFIG) == config.config_word
    assert block.read32(Reg.ID) == config.id_word
    assert block.read32(Reg.CMD) == 0xC
    assert block.read32(Reg.STATUS) == 0
    block.write32(Reg.CONFIG, 0)
    assert block.read32(Reg.CONFIG) == config.config_word


def failing(victim: str, commands: bytes, queue: int = QUEUE) -> tuple[int, NpuError]:
    block, host = make(victim)
    host.commands = commands
    start(block, len(commands), queue)
    assert block.irq
    assert block.result is None
    assert block.fault is not None
    return block.read32(Reg.STATUS) & ~(0xFFFF << 16), block.fault


def test_parse_error() -> None:
    status, fault = failing(VICTIMS["U85"], b"\xff\0\0\0")
    assert status == Status.IRQ_RAISED | Status.CMD_PARSE_ERROR
    assert isinstance(fault, StreamError)


def test_bus_error_of_the_job() -> None:
    host = make(VICTIMS["U85"])[1]
    victim = stream.encode(stream.command(npu_config("ethos-u85").family, "IFM_BASE0", address=1 << 38))
    operation = host.commands.index(b"\x05\0\x03\0")  # the first pool
    status, fault = failing(VICTIMS["U85"], host.commands[:operation] + victim + host.commands[operation:])
    assert status == Status.IRQ_RAISED | Status.BUS_ERROR
    assert isinstance(fault, BusError)
    assert fault.opcode == "OP_POOL"
    assert fault.offset == operation + len(victim)


def test_bus_error_of_the_queue() -> None:
    status, fault = failing(VICTIMS["U85"], b"", queue=0x1234_0000_0000)
    assert status == Status.IRQ_RAISED | Status.BUS_ERROR
    assert isinstance(fault, BusError)


def test_branch_fault() -> None:
    branch = stream.command(npu_config("ethos-u85").family, "OP_BRANCH", target=4, condition=0)
    status, _ = failing(VICTIMS["U85"], stream.encode(branch))
    assert status == Status.IRQ_RAISED | Status.BRANCH_FAULT


@pytest.mark.parametrize("victim", VICTIMS.values(), ids=VICTIMS)
def test_pmu(victim: str) -> None:
    block, host = make(victim)
    is_u85 = "u85" in victim
    base, counters = (0x1180, 8) if is_u85 else (0x180, 4)
    start(block, len(host.commands))
    assert block.read32(base) == counters << 11
    block.write32(base, 1)
    assert block.read32(base) == counters << 11 | 1
    block.write32(base + 4, 0x8000_001F if is_u85 else 0x8000_000F)
    assert block.read32(base + 4) == block.read32(base + 8) == (0x8000_001F if is_u85 else 0x8000_000F)
    block.write32(base + 8, 0x8000_0000)
    assert block.read32(base + 4) == (0x1F if is_u85 else 0xF)
    block.write32(base + 0x200, 0x23)
    block.write32(base + 0x204, 0x82)
    assert block.read32(base + 0x180) == block.read32(base + 0x20) == 0
    assert block.pmu.unavailable == ("NPU_ACTIVE", f"{'SRAM' if is_u85 else 'AXI0'}_RD_DATA_BEAT_RECEIVED")
    block.write32(base + 0x180, 7)
    assert block.read32(base + 0x180) == 7
    block.write32(base, 3)
    assert block.read32(base + 0x180) == 0
    assert block.read32(base) == counters << 11 | 1


@pytest.mark.parametrize("offset", [-4, 2, 0x2000, 1 << 20])
def test_outside_the_block(offset: int) -> None:
    block, _ = make(VICTIMS["U85"])
    with pytest.raises(ValueError, match="no register"):
        block.read32(offset)
    with pytest.raises(ValueError, match="no register"):
        block.write32(offset, 0)

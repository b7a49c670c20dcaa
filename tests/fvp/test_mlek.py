# SPDX-License-Identifier: Apache-2.0
"""Reading the firmware's console and output memory: what counts as proof and what does not."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from fvp.virtual import mlek
from fvp.virtual.boards import CORSTONE_320
from fvp.virtual.devices.npu import NpuJob
from fvp.virtual.elf import Image
from fvp.virtual.firmware import Workload
from fvp.virtual.machine import Ending, Reason
from npu.errors import BusError, StreamError
from report.errors import CompileError, EnvironmentError_

SIZES = (24, 5)
INPUTS = (bytes(16), bytes(4))
JOB = NpuJob(0.1, None, None, ())
LOG = """INFO - Model initialisation complete
INFO - [Internal only] Ethos-U Evaluation Kit
INFO - Version 25.12.0 Build date: Mar 19 2026
INFO - 2 input tensor/s populated with 20 bytes with data read from 0x62000000
INFO - NPU ACTIVE: 120 cycles
INFO - NPU ETHOSU_PMU_SRAM_RD_DATA_BEAT_RECEIVED: 7 beats
INFO - NPU TOTAL: 150 cycles
INFO - 2 output tensor/s worth 29 bytes copied to 0x63000000
INFO - program terminating...
"""


class Memory:
    """Guest memory as a dictionary of written ranges."""

    def __init__(self) -> None:
        self.data = bytearray(0x100)

    def write(self, address: int, data: bytes) -> None:
        if address == 0x6300_0000:
            self.data[: len(data)] = data

    def read(self, address: int, size: int) -> bytes:
        assert address == 0x6300_0000
        return bytes(self.data[:size])


IMAGE = Image(None, None, "", 0, {"_write": 4})  # type: ignore[arg-type]
ENDING = Ending(Reason.CONSOLE)


WORKLOAD = Workload(b"program", INPUTS, SIZES, 1, None, Path(), "run")


def made(calls: int = 1, **changes: Any) -> mlek.MlekFirmware:
    workload = dataclasses.replace(WORKLOAD, delegate_calls=calls, **changes)
    return mlek.MlekFirmware(CORSTONE_320, IMAGE, workload)


@pytest.fixture
def firmware() -> mlek.MlekFirmware:
    return made()


def failed(firmware: mlek.MlekFirmware, log: str = LOG, jobs: tuple[NpuJob, ...] = (JOB,)) -> list[str]:
    return [check.name for check in firmware.evidence(log, jobs, ENDING) if not check.passed]


def test_good_log_proves_the_run(firmware: mlek.MlekFirmware) -> None:
    assert failed(firmware) == []
    assert failed(made(calls=0), jobs=()) == []


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("Model initialisation complete", "", "model loaded"),
        ("Ethos-U Evaluation Kit", "", "firmware banner"),
        ("program terminating", "", "end marker"),
        ("2 input tensor/s populated with 20", "2 input tensor/s populated with 24", "inputs read"),
        ("2 output tensor/s worth 29", "1 output tensor/s worth 29", "outputs written"),
        ("2 output tensor/s", "no output", "outputs written"),
        ("INFO - NPU ACTIVE", "E [ExecuTorch: x.cpp:1 f()] bad\nINFO - NPU ACTIVE", "firmware errors"),
        ("INFO - NPU ACTIVE", "E: ethosu_driver.c: bad\nINFO - NPU ACTIVE", "firmware errors"),
        ("INFO - NPU ACTIVE", "ERROR - Inference failed.\nINFO - NPU ACTIVE", "firmware errors"),
    ],
)
def test_each_missing_piece_fails_the_run(firmware: mlek.MlekFirmware, old: str, new: str, name: str) -> None:
    assert failed(firmware, LOG.replace(old, new)) == [name]


def test_delegates_without_a_job_and_faults_fail_the_run(firmware: mlek.MlekFirmware) -> None:
    assert failed(firmware, jobs=()) == ["npu jobs"]
    job = NpuJob(0.1, None, BusError(1, 0x40, 8, opcode="OP_CONV", offset=16), ())
    (check, *_) = firmware.evidence(LOG, (JOB, job), ENDING)
    assert not check.passed and "NPU BusError" in check.detail and "OP_CONV" in check.detail
    faulty = NpuJob(0, None, StreamError("x"), ())
    assert "StreamError" in firmware.evidence(LOG, (faulty,), ENDING)[0].detail


def test_silent_firmware_has_no_proof_at_all(firmware: mlek.MlekFirmware) -> None:
    assert {"firmware banner", "model loaded", "end marker", "outputs written"} <= set(failed(firmware, ""))


@pytest.mark.parametrize(
    ("write", "passed"), [((0, 29), True), ((0, 24), False), ((24, 29), False), ((0, 40), False)]
)
def test_outputs_must_all_be_written_and_nothing_more(
    firmware: mlek.MlekFirmware, write: tuple[int, int], passed: bool
) -> None:
    memory = Memory()
    firmware.load(memory)  # type: ignore[arg-type]
    memory.data[write[0] : write[1]] = bytes(write[1] - write[0])
    parts, check = firmware.outputs(memory)  # type: ignore[arg-type]
    assert check.passed is passed, check.detail
    assert [len(part) for part in parts] == [24, 5]


@pytest.mark.parametrize("window", [mlek.MODEL, mlek.INPUTS, mlek.OUTPUTS])
def test_what_does_not_fit_is_refused_before_anything_is_written(window: mlek.Window) -> None:
    huge = bytes(window.size + 1)
    changes = {mlek.MODEL: {"program": huge}, mlek.INPUTS: {"inputs": (huge,)}}
    firmware = made(**changes.get(window, {"output_sizes": (window.size,)}))
    with pytest.raises(
        CompileError, match=rf"{window.name}: requested \d+ bytes, available {window.size}, missing"
    ):
        firmware.load(None)  # type: ignore[arg-type]


def test_counters_from_lines_and_metrics() -> None:
    assert made().counters(LOG) == {"npu_active": 120, "sram_rd_data_beat_received": 7, "npu_total": 150}
    groups = [
        {"profiling_group": "Inference", "count": 1, "samples": [{"name": "NPU IDLE", "value": [1, 30]}]}
    ]
    block = base64.b64encode(json.dumps(groups).encode()).decode()
    assert made().counters(f"INFO - <metrics>{block}</metrics>\n") == {"npu_idle": 30}


@pytest.mark.parametrize(
    "block", ["", "!!!", base64.b64encode(b"{}").decode(), base64.b64encode(b"[1]").decode(), "QQ="]
)
def test_damaged_metrics_are_ignored(block: str) -> None:
    assert made().counters(f"<metrics>{block}</metrics>") == {}


def test_banner_lines(firmware: mlek.MlekFirmware) -> None:
    lines = firmware.banner(LOG)
    assert lines == ("[Internal only] Ethos-U Evaluation Kit", "Version 25.12.0 Build date: Mar 19 2026")


def test_console_hook_serves_write_and_returns(firmware: mlek.MlekFirmware) -> None:
    from fvp.virtual.cpu import Registers
    from fvp.virtual.devices.console import Console

    class Text:
        def read(self, address: int, size: int) -> bytes:
            assert (address, size) == (0x100, 3)
            return b"abc"

    console = Console()
    (hook,) = firmware.hooks(console, Text()).values()  # type: ignore[arg-type]
    registers = Registers((1, 0x100, 3, *[0] * 11, 0x2001, 4, 0))
    hook(registers, Text())  # type: ignore[arg-type]
    assert console.text == "abc" and registers.changed == {0: 3, 15: 0x2000}


def test_image_without_the_symbol_is_refused() -> None:
    with pytest.raises(EnvironmentError_, match="no symbol _write"):
        mlek.MlekFirmware(CORSTONE_320, dataclasses.replace(IMAGE, symbols={}), WORKLOAD)

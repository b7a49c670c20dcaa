# SPDX-License-Identifier: Apache-2.0
"""Command streams written by hand: registers by name, for what no compiler at hand emits."""

from __future__ import annotations

import numpy as np

from npu import isa, stream
from npu.config import Family, NpuConfig, npu_config
from npu.machine import Npu, RunResult
from npu.memory import ArrayMemory

NAMES = {Family.U55: "ethos-u55-128", Family.U65: "ethos-u65-256", Family.U85: "ethos-u85-256"}
BYTES = 1 << 16
PRECISION = {
    1: isa.Precision.BITS_8,
    2: isa.Precision.BITS_16,
    4: isa.Precision.BITS_32,
    8: isa.Precision.BITS_64,
}


class Program:
    """Commands for one family, and a memory with one region (1) to run them on."""

    def __init__(self, family: Family):
        self.config: NpuConfig = npu_config(NAMES[family])
        self.family = family
        self.commands: list[stream.Command] = []
        self.data = np.zeros(BYTES, np.uint8)

    def __call__(self, name: str, value: int | None = None, **fields: int) -> None:
        """Append a command; `value` goes to its only field."""
        if value is not None:
            (field,) = isa.BY_NAME[self.family][name].fields
            fields = {field.name: value}
        self.commands.append(stream.command(self.family, name, **fields))

    def put(self, offset: int, array: np.ndarray) -> None:
        """Place array bytes in memory."""
        raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self.data[offset : offset + raw.size] = raw

    def get(self, offset: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """Read array bytes from memory."""
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self.data[offset : offset + count].view(dtype).reshape(shape)

    def feature_map(
        self, name: str, offset: int, shape: tuple[int, int, int], dtype: str, **precision: int
    ) -> None:
        """An NHWC map of one tile in region 1; for the OFM its shape too."""
        height, width, depth = shape
        size = np.dtype(dtype).itemsize
        signed = np.dtype(dtype).kind == "i"
        self(f"{name}_PRECISION", signed=int(signed), precision=PRECISION[size], **precision)
        self(f"{name}_REGION", 1)
        self(f"{name}_BASE0", offset)
        self(f"{name}_WIDTH0_M1", width - 1)
        self(f"{name}_HEIGHT0_M1", height - 1)
        self(f"{name}_HEIGHT1_M1", height - 1)
        self(f"{name}_STRIDE_X", depth * size)
        self(f"{name}_STRIDE_Y", width * depth * size)
        if name == "OFM":
            for axis, extent in zip(("HEIGHT", "WIDTH", "DEPTH"), shape, strict=True):
                self(f"OFM_{axis}_M1", extent - 1)

    def run(self) -> RunResult:
        """Run the commands and a STOP."""
        self("OP_STOP", 0xFFFF)
        return Npu(self.config).run_commands(stream.encode_all(self.commands), ArrayMemory({1: self.data}))

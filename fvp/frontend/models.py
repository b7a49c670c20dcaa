# SPDX-License-Identifier: Apache-2.0
"""The FVPs whose place the front ends take: name of the program, board, NPU, and names of the instances."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """One FVP.

    Attributes:
        program: its file name.
        instance: name of the top-level component, as in its statistics.
        board: the board of `cmake/boards` it simulates.
        family: NPU family ("ethos-u55" …).
        macs: default MAC units per cycle.
        cpu, npu, peripherals: instance names that parameters begin with.
    """

    program: str
    instance: str
    board: str
    family: str
    macs: int
    cpu: str
    npu: str
    peripherals: str


_MPS3 = ("cpu0", "ethosu", "mps3_board")
_MPS4 = ("mps4_board.subsystem.cpu0", "mps4_board.subsystem.ethosu", "mps4_board")
_SSE_300, _SSE_310, _SSE_320 = (
    f"FVP_{board}_Corstone_SSE_{n}" for board, n in (("MPS3", 300), ("MPS3", 310), ("MPS4", 320))
)

MODELS = {
    model.program: model
    for model in (
        Model("FVP_Corstone_SSE-300_Ethos-U55", _SSE_300, "corstone-300", "ethos-u55", 128, *_MPS3),
        Model("FVP_Corstone_SSE-300_Ethos-U65", _SSE_300, "corstone-300", "ethos-u65", 256, *_MPS3),
        Model("FVP_Corstone_SSE-310", _SSE_310, "corstone-310", "ethos-u55", 128, *_MPS3),
        Model("FVP_Corstone_SSE-310_Ethos-U65", _SSE_310, "corstone-310", "ethos-u65", 256, *_MPS3),
        Model("FVP_Corstone_SSE-320", _SSE_320, "corstone-320", "ethos-u85", 256, *_MPS4),
    )
}

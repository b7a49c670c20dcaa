# SPDX-License-Identifier: Apache-2.0
"""Memory modes place feature maps and weights differently; what is computed stays the same.

Vela's own result is loaded here, since the VelaBin container does not tell the size of the fast scratch.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from npu.container import load_raw_npz
from oracle import reference, streams
from oracle.cache import LoweredModels
from oracle.compare import differences

MODES = {
    "ethos-u55-128": ("Sram_Only", "Shared_Sram"),
    "ethos-u65-512": ("Sram_Only", "Shared_Sram", "Dedicated_Sram", "Dedicated_Sram_384KB"),
    "ethos-u85-256": ("Sram_Only", "Shared_Sram", "Dedicated_Sram", "Dedicated_Sram_384KB"),
}
CASES = [
    (model, npu, mode) for model in ("ds_cnn", "cascade") for npu, modes in MODES.items() for mode in modes
]


@pytest.mark.parametrize(("name", "npu", "mode"), CASES)
def test_equals_reference_model(
    name: str, npu: str, mode: str, lowered_models: LoweredModels, tmp_path: Path
) -> None:
    (graph,) = lowered_models.delegates(name, npu)
    streams.compile_tosa(graph, npu, keep=tmp_path, flags=[f"--memory-mode={mode}"])
    binary = load_raw_npz(tmp_path / "output" / "out_vela.npz")
    assert differences(binary, npu, graph, reference.random_inputs(graph, seed=1)) == []

# SPDX-License-Identifier: Apache-2.0
"""COP2 payloads ("direct drive"), with inputs and outputs in regions of their own, as Vela writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ethosu.vela import vela

from npu import stream
from npu.container import load_raw_npz
from report.quiet import quiet
from tests.conformance.cases import Case, first_difference, run_compiled, vela_arguments
from tests.conformance.sets import Maker

TEST = "FU2/fused_conv2d_3x3/fused_conv2d_3x3_1x20x7x17_i8xi8_acci32_st11_pad1211_dilat11_lclbnd0_0"


@pytest.mark.parametrize("npu", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
@pytest.mark.parametrize("separate", [False, True], ids=["scratch", "separate-io"])
def test_cop2(npu: str, separate: bool, tmp_path: Path) -> None:
    folder = Maker(tmp_path).folder(TEST)
    assert folder is not None
    case, out = Case(folder), tmp_path / "out"
    options = ["--cop-format=COP2", *(["--separate-io-regions"] if separate else [])]
    with quiet():
        vela.main([*vela_arguments(case.graph_path, npu, out), *options])
    compiled = out / "test_vela.npz"
    binary = load_raw_npz(compiled)
    assert binary.cmd_data[:4] == b"COP2"
    assert stream.parse(binary.cmd_data).commands[-1].name == "OP_STOP"
    assert [(spec.region) for spec in (*binary.inputs, *binary.outputs)] == ([3, 4] if separate else [1, 1])
    expected = case.expected()
    assert expected is not None
    assert first_difference(run_compiled(compiled, npu, case.inputs()), expected) == ""

# SPDX-License-Identifier: Apache-2.0
"""Known differences as negative controls: the compiler's faults show, and the rules tell them from ours.

A model that passed these tests exactly would not be executing the stream. Each is also judged with one wrong
element more, which no rule may excuse.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npu.container import load_raw_npz
from npu.stream import parse
from tests.conformance import cases, compose
from tests.conformance.cases import Case, judge
from tests.conformance.sets import Maker
from tests.conformance.tosa_graph import Graph

CONTROLS = {
    "K1": ("A/arithmetic_right_shift/arithmetic_right_shift_4x1_i32_roundFalse", "ethos-u55-128"),
    "K2": ("A/resize/resize_1x7x9x7_i16_modeN_outi16_sc4x1x3x1_off0x0_bor0x0", "ethos-u55-128"),
    "K3": ("F/cast/cast_4x3x3x5_i16_outi8_is", "ethos-u65-256"),
    "K4": ("A/rescale/rescale_9_i16_outi32_sc1_rmI_pc0_iu0_ou0", "ethos-u85-256"),
    "K8": ("FU2/fused_reduce_sum/fused_reduce_sum_4x1x13x3_i32_axis2_0", "ethos-u55-128"),
    "K9": (
        "A/conv3d_1x1x1/conv3d_1x1x1_1x2x7x5x2_i8xi8_acci32_st211_pad010000_dilat222_lclbnd0",
        "ethos-u65-512",
    ),
    "K5": ("X/avg_pool2d/avg_pool2d_2x17x15x5_i8_acci32_st33_kern79_pad1100", "ethos-u85-256"),
}


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    return Maker(tmp_path_factory.mktemp("conformance"))


def per_channel_matmul(maker: Maker, folder: Path) -> Path | None:
    source = maker.folder("A/matmul/matmul_5x4x3_i8xi8_outi32")
    assert source is not None
    return compose.compose(source, folder, 1, 0, channel_scales=True)


def wide_bias(maker: Maker, folder: Path) -> Path | None:
    name = "conv2d_1x1_1x2x16x8_i16xi8_acci48_st11_pad1100_dilat11_lclbnd0"
    source = maker.folder(f"A/conv2d_1x1/{name}")
    assert source is not None
    return compose.compose(source, folder, 1, 0, own_biases=True)


@pytest.mark.parametrize("known", CONTROLS)
def test_the_compilers_fault_shows_and_is_recognised(known: str, maker: Maker, tmp_path: Path) -> None:
    test, npu = CONTROLS[known]
    folder = maker.folder(test)
    assert folder is not None
    assert judge(Case(folder), test, "", npu, tmp_path).known == known


@pytest.mark.parametrize(
    ("known", "make", "npu"),
    [("K6", per_channel_matmul, "ethos-u85-256"), ("K7", wide_bias, "ethos-u55-128")],
)
def test_composites_that_show_a_fault(
    known: str, make: Callable[[Maker, Path], Path | None], npu: str, maker: Maker, tmp_path: Path
) -> None:
    folder = make(maker, tmp_path / "test")
    assert folder is not None
    assert judge(Case(folder), folder.name, "", npu, tmp_path / "compiled").known == known


def test_padding_in_front_leaves_the_second_core_no_bias_at_all(maker: Maker, tmp_path: Path) -> None:
    """Nothing has set SCALE1_BASE then, so a model that reads on there in K9 would be right by accident."""
    source = maker.folder(CONTROLS["K9"][0])
    assert source is not None
    folder = shutil.copytree(source, tmp_path / "test", ignore=shutil.ignore_patterns("ref-*"))
    graph = Graph(folder / "test.tosa")
    (convolution,) = graph.operators("CONV3D")
    convolution["attribute"]["pad"] = [1, 0, 0, 0, 0, 0]
    graph.save(folder / "test.tosa")
    verdict = judge(Case(folder), "", "", "ethos-u65-512", tmp_path / "compiled")
    assert (verdict.status, verdict.known) == ("error", "K9")
    stream = parse(load_raw_npz(tmp_path / "compiled" / "test_vela.npz").cmd_data)
    names = [command.name for command in stream.commands]
    assert "SCALE1_BASE" not in names[: names.index("OP_POOL")]
    assert "SCALE1_BASE" in names[names.index("OP_POOL") :]


@pytest.mark.parametrize("known", ["K1", "K3", "K4"])
def test_a_fault_of_ours_is_not_excused(
    known: str, maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cases.run_compiled

    def damaged(*arguments) -> list[np.ndarray]:
        outputs = run(*arguments)
        outputs[0].reshape(-1)[0] ^= 0x40
        return outputs

    monkeypatch.setattr(cases, "run_compiled", damaged)
    test, npu = CONTROLS[known]
    folder = maker.folder(test)
    assert folder is not None
    verdict = judge(Case(folder), test, "", npu, tmp_path)
    assert (verdict.status, verdict.known) == ("different", "")

# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the fp16 kernels, against the kernels themselves under emulation: every bit."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aot import compile as aot_compile
from fvp.aarch64 import fp16_sums, reference, study
from fvp.aarch64.platform import Aarch64Emulated
from fvp.inference import Request

MODEL = """
    import torch
    from torch import nn

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 16, 3, stride=2, padding=1)  # an odd number of channels
            self.grouped = nn.Conv2d(48, 32, 3, padding=1, groups=4)
            self.multiplied = nn.Conv2d(24, 48, 3, groups=24)
            self.folded = nn.Sequential(nn.Conv2d(48, 33, 1, bias=False), nn.BatchNorm2d(33))
            self.deep = nn.Sequential(nn.ReLU6(), nn.Conv2d(33, 33, 3, groups=33), nn.BatchNorm2d(33))
            self.wide = nn.Sequential(nn.Conv2d(48, 48, 5, padding=2, dilation=2, groups=48), nn.ReLU())
            self.norm = nn.BatchNorm2d(48)
            self.up, self.over = nn.ConvTranspose2d(48, 9, 2, 2), nn.ConvTranspose2d(48, 9, 3, 2, 1, 1)
            self.one = nn.Linear(335, 40)
            self.same = nn.Conv2d(48, 16, (4, 3), padding="same")
            self.rows = nn.Sequential(nn.Conv1d(335, 20, 5, stride=2, padding=2), nn.BatchNorm1d(20))
            for norm in (self.folded[1], self.deep[2], self.norm, self.rows[1]):
                norm.running_mean.uniform_(-1, 1), norm.running_var.uniform_(0.5, 2)

        def forward(self, image, x, row, left, right, tall):
            folded = self.folded(x)
            return (
                self.first(image), self.grouped(x), self.multiplied(x[:, :24]), folded, self.deep(folded),
                self.norm(self.wide(x)), self.up(x), self.over(x), self.one(row), left @ right, x * 0.3,
                self.same(x), self.rows(tall)
            )

    torch.manual_seed(0)
    ModelUnderTest = Layers().eval()
    ModelInputs = (
        torch.randn(1, 3, 9, 11), torch.randn(1, 48, 7, 6), torch.randn(1, 335),
        torch.randn(2, 5, 40), torch.randn(2, 40, 12),
        torch.randn(1, 335, 12),
    )
"""

emulated = pytest.mark.skipif(
    Aarch64Emulated.available() is not None, reason=str(Aarch64Emulated.available())
)


@emulated
def test_sums_are_those_of_the_kernels(tmp_path: Path) -> None:
    model = tmp_path / "layers.py"
    model.write_text(textwrap.dedent(MODEL))
    words = ("--model", str(model), "-t", "cortex-a", "--dtype", "fp16", "-o", str(tmp_path))
    assert aot_compile.main(list(words)) == 0
    (program,) = tmp_path.glob("*.pte")
    found = study.infer(Request(program, timeout=300))
    assert found.error is None, found.log
    checks = {check.name: check.detail for check in found.record.checks}
    for name in ("output", "output with NEON"):
        assert checks[name] == f"exact: 13 output(s) bit-equal to {study.FP16_SUMS}"
    (error,) = [metric.value for metric in found.record.metrics if metric.name == "simulation_error"]
    assert error is not None and 1e-4 < error < reference.TOLERANCES["fp16"]  # torch sums otherwise


def test_modes_must_differ_as_their_references_do() -> None:
    sme, neon = (np.array(values, np.float16) for values in ([1.0, 2.0, 4.0], [1.0, 2.5, 4.0]))
    (same,) = reference.moved([neon], [neon], [sme])
    assert reference.check_close("x", [sme], [same], "x", "fp16").detail.startswith("exact")
    (other,) = reference.moved([neon + np.float16(0.5)], [neon], [sme])
    assert reference.check_close("x", [sme], [other], "x", "fp16").result == "fail"


halves = st.floats(-100, 100, width=16)


@given(rows=st.lists(st.tuples(halves, halves), min_size=1, max_size=40), bias=halves)
def test_a_narrow_sum_rounds_at_each_product(rows: list[tuple[float, float]], bias: float) -> None:
    """Against one sum after the other, in Python's floats, wide enough for a product and a sum."""
    total = bias if abs(bias) >= fp16_sums.NORMAL else 0.0
    for pair in rows:
        a, b = (value if abs(value) >= fp16_sums.NORMAL else 0.0 for value in pair)
        exact = total + a * b
        total = float(np.float16(exact)) if abs(exact) >= fp16_sums.NORMAL else 0.0
    left, right = (np.array(side, np.float16)[None, None] for side in zip(*rows, strict=True))
    twice = np.concatenate([left, left])  # one row alone would be summed in four parts
    out = fp16_sums.narrow_sums(twice, right, np.array([bias], np.float16))
    assert out[:, 0].tolist() == [total, total]

# SPDX-License-Identifier: Apache-2.0
"""16-bit activations: exact, and the boundary uses kernels that released firmware has for int16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from validation.examples_matrix import cases

from aot.options import Dtype
from report import pte
from tests.aot.conftest import Finished


def test_int16_is_exact_and_quantised_by_the_portable_kernels(tmp_path: Path) -> None:
    (found,) = cases("two_conv", tmp_path, ["ethos-u85-256"], Dtype.A16W8)
    assert found.differences == () and found.cpu_ops == ()
    (program,) = tmp_path.glob("*.pte")
    calls = [i.operator for i in pte.load(program).method().instructions if isinstance(i, pte.KernelCall)]
    assert calls == [
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
    ]


def test_an_accumulator_with_two_readers_is_narrowed_once(
    tmp_path: Path, model_file: Callable[..., Path]
) -> None:
    """ExecuTorch gives the addition the 48-bit accumulator, which Ethos-U55 and U65 cannot store."""
    model = model_file(
        "(y := self.a(x)) + self.b(y)",
        "torch.rand(1, 16, 8, 8)",
        "self.a = nn.Conv2d(16, 16, 1); self.b = nn.Conv2d(16, 16, 1)",
    )
    for case in cases(str(model), tmp_path, ["ethos-u55-128", "ethos-u65-512", "ethos-u85-256"], Dtype.A16W8):
        assert (case.delegates, case.cpu_ops, case.differences) == (1, (), ()), case.target


def test_a_transposed_convolution_stays_on_the_cpu_with_the_reason(
    tmp_path: Path, model_file: Callable[..., Path], compile_: Callable[..., Finished]
) -> None:
    model = model_file(
        "self.up(self.a(x).relu())",
        "torch.rand(1, 4, 6, 6)",
        "self.a = nn.Conv2d(4, 8, 3); self.up = nn.ConvTranspose2d(8, 4, 2, 2)",
    )
    done = compile_(
        "-m", model, "-t", "ethos-u55-128,ethos-u85-128", "--dtype", "a16w8", "--json", "-o", tmp_path
    )
    assert done.code == 0, done.err
    small, large = done.reports
    (op,) = (op for op in small["cpu_ops"] if op["op"] == "aten::convolution")
    assert "no transposed convolution of 16-bit inputs" in op["reason"]
    assert len(small["delegates"]) == 1 and large["cpu_ops"] == []

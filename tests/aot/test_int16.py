# SPDX-License-Identifier: Apache-2.0
"""16-bit activations: exact, and the boundary uses kernels that released firmware has for int16."""

from __future__ import annotations

from pathlib import Path

from validation.examples_matrix import cases

from aot.options import Dtype
from report import pte


def test_int16_is_exact_and_quantised_by_the_portable_kernels(tmp_path: Path) -> None:
    (found,) = cases("two_conv", tmp_path, ["ethos-u85-256"], Dtype.A16W8)
    assert found.differences == () and found.cpu_ops == ()
    (program,) = tmp_path.glob("*.pte")
    calls = [i.operator for i in pte.load(program).method().instructions if isinstance(i, pte.KernelCall)]
    assert calls == [
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
    ]

# SPDX-License-Identifier: Apache-2.0
"""16-bit activations: the boundary uses kernels that released firmware has for int16."""

from __future__ import annotations

from pathlib import Path

from aot.compile import main
from report import pte


def test_int16_is_quantised_by_the_portable_kernels(tmp_path: Path) -> None:
    program = tmp_path / "m.pte"
    assert main(["-m", "two_conv", "--dtype", "a16w8", "-t", "ethos-u85", "-o", str(program)]) == 0
    calls = [i.operator for i in pte.load(program).method().instructions if isinstance(i, pte.KernelCall)]
    assert calls == [
        "quantized_decomposed::quantize_per_tensor.out",
        "quantized_decomposed::dequantize_per_tensor.out",
    ]

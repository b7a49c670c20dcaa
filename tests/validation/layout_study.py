# SPDX-License-Identifier: Apache-2.0
"""What the layout passes change, as the table in docs/validation.md.

    python -m tests.validation.layout_study [--size 48] [--dtype fp32 ...] [--no-run]

Each form of the UNet is compiled for a Cortex-A and run under emulation with SME2 and with NEON. The error is
the emulated SME2 run's largest difference from the float32 model in torch, as a part of its largest output.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aot import compile as aot_compile
from aot.models import load_model
from fvp.aarch64 import study
from fvp.inference import Request
from report.arguments import Parser
from report.tables import table

_GELU = """
import torch
from torch import nn
from examples._weights import seeded
from examples.unet import UNet

batch = torch.rand(4, 3, 96, 96, generator=torch.Generator().manual_seed(1)) * 2 - 1
ModelUnderTest = seeded(UNet(activation=nn.GELU), batch, seed=0)
ModelInputs = (batch[:1].clone(),)
"""
_DTYPES = ("fp32", "fp16", "int8")
_KEPT_OUT = ("--keep-out", "batch_norm")


@dataclass(frozen=True)
class Case:
    """One way to compile one form of the UNet."""

    model: str
    form: str
    words: tuple[str, ...]


_CASES = (
    Case("unet_norm_last", "conv-act-norm, norms kept out", _KEPT_OUT),
    Case("unet_norm_last", "the same, --fix-layout", (*_KEPT_OUT, "--fix-layout")),
    Case("unet_norm_last", "conv-act-norm, as ExecuTorch 1.5.1 does it", ()),
    Case("unet_norm_last", "the same, --fix-layout", ("--fix-layout",)),
    Case("unet", "conv-norm-act", ()),
)
_GELU_CASES = (
    Case("gelu", "conv-norm-GELU", ()),
    Case("gelu", "the same, --approximate-gelu", ("--approximate-gelu",)),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Compile and run every case; a failed run is an exit code of 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=48, help="height and width of the input")
    parser.add_argument("--dtype", nargs="+", choices=_DTYPES, default=_DTYPES)
    parser.add_argument("--no-run", dest="run", action="store_false", help="compile only")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(_rows(arguments, Path(folder)))
    print(table(rows))
    return 0


def _rows(arguments: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    (folder / "gelu.py").write_text(_GELU, encoding="utf-8")
    image = (
        torch.rand(1, 3, arguments.size, arguments.size, generator=torch.Generator().manual_seed(2)) * 2 - 1
    )
    torch.save(image, folder / "image.pt")
    for dtype in arguments.dtype:
        for number, case in enumerate((*_CASES, *(_GELU_CASES if dtype == "fp16" else ()))):
            print(f"{dtype}: {case.form}", file=sys.stderr, flush=True)
            yield _row(case, dtype, folder, folder / f"{dtype}-{number}", run=arguments.run)


def _row(case: Case, dtype: str, folder: Path, output: Path, *, run: bool) -> dict[str, Any]:
    source = str(folder / "gelu.py") if case.model == "gelu" else case.model
    words = ["--model", source, "--model_input", str(folder / "image.pt"), "-t", "cortex-a", "--dtype", dtype]
    parser = Parser()
    aot_compile.add_arguments(parser)
    options = parser.parse_args([*words, "-o", str(output), *case.words])
    ((program, report),) = aot_compile.compile_models(options)
    totals = report["layout"]["after"]
    return {
        "type": dtype,
        "form": case.form,
        "partitions": totals["partitions"],
        "outside": totals["outside"],
        "transposes": totals["transposes"]["count"],
        "bytes transposed": totals["transposes"]["bytes"],
        "copies": totals["copies"]["count"],
        **(_measured(program, source, folder / "image.pt") if run else {}),
        "pass error": ", ".join(f"{r['error']:.1e}" for r in report["layout"]["rewrites"]),
    }


def _measured(program: Path, source: str, image: Path) -> dict[str, Any]:
    """Instructions of a steady inference by mode, and the outputs' error."""
    result = study.infer(Request(program, timeout=3600))
    if result.error is not None:
        raise result.error
    model = load_model(source, str(image))
    assert model.module is not None
    with torch.no_grad():
        expected = model.module(*model.inputs).double().numpy()
    error = np.abs(result.outputs[0].astype(np.float64) - expected).max() / np.abs(expected).max()
    counts = {profile.target.title: profile.inference for profile in result.profiles}
    return {**counts, "error": f"{error:.1e}"}


if __name__ == "__main__":
    sys.exit(main())

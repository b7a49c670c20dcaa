# SPDX-License-Identifier: Apache-2.0
"""Every bundled example on every NPU configuration: compiled by `aot`, its delegates compared bit for bit.

    python tests/validation/examples_matrix.py [--dtype int8|a16w8] [MODEL ...]

takes both types unless told, and prints the table of docs/validation.md: partitions, operators left on the
CPU, and how many delegates equal `tosa_reference_model` on random full-range inputs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot import compile as aot_compile
from aot.model_names import example_names
from aot.options import Dtype, parse_dtype
from fvp import tosa
from fvp.compare import first_difference
from npu.config import CONFIGS, npu_config
from npu.container import parse_velabin
from npu.machine import execute
from report import compile_report, pte
from report.tables import table

SEEDS = (1, 2)
FOR_CORTEX_A = frozenset({"conv_transformer_unet", "unet_norm_last", "unet_small"})
"""Examples that are made to be run on a Cortex-A."""

FOR_ETHOS_U = tuple(name for name in example_names() if name not in FOR_CORTEX_A)
RESULT = "delegates vs TOSA"


@dataclass(frozen=True)
class Case:
    """One example on one target: what stayed on the CPU, and what differs (empty: all delegates exact)."""

    model: str
    dtype: str
    target: str
    delegates: int
    cpu_ops: tuple[str, ...]
    differences: tuple[str, ...]


def cases(
    model: str, folder: Path, targets: Sequence[str] = tuple(CONFIGS), dtype: Dtype = Dtype.INT8
) -> Iterator[Case]:
    """Compile `model` for `targets` in one go and compare each delegate on each seed."""
    parser = argparse.ArgumentParser()
    aot_compile.add_arguments(parser)
    words = ["-m", model, "--dtype", dtype.value, "-t", ",".join(targets), "-o", str(folder)]
    arguments = parser.parse_args(words)
    for program, report in aot_compile.compile_models(arguments):
        cpu_ops = tuple(op["op"] for op in report["cpu_ops"])
        found = tuple(_differences(program))
        yield Case(model, dtype.value, report["target"], len(report["delegates"]), cpu_ops, found)


def _differences(path: Path) -> Iterator[str]:
    report, program = compile_report.load(compile_report.path_for(path)), pte.load(path)
    for number, delegate in enumerate(program.method().delegates):
        binary = parse_velabin(delegate.blob, program.named_data)
        graph = report.tosa[number].read_bytes()
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            inputs = [_full_range(rng, kind) for kind in tosa.signature(graph).inputs]
            outputs = execute(binary, npu_config(report.target), inputs)
            for ours, expected in zip(outputs, tosa.run_reference(graph, inputs), strict=True):
                same_type = np.frombuffer(ours.tobytes(), expected.dtype).reshape(expected.shape)
                difference = first_difference(same_type, expected)
                if difference is not None:
                    yield f"delegate {number}, seed {seed}: {difference}"


def _full_range(rng: np.random.Generator, kind: tosa.TensorType) -> np.ndarray:
    info = np.iinfo(kind.dtype)
    return rng.integers(info.min, info.max, kind.shape, dtype=kind.dtype, endpoint=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; exit code 5 when anything differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="default: all")
    parser.add_argument("--dtype", type=parse_dtype, action="append", help="default: all")
    arguments = parser.parse_args(argv)
    rows = []
    for model in arguments.models or FOR_ETHOS_U:
        for dtype in arguments.dtype or Dtype:
            with tempfile.TemporaryDirectory() as folder:
                for case in cases(model, Path(folder), dtype=dtype):
                    rows.append(_row(case))
                    print(rows[-1], file=sys.stderr, flush=True)
    print(table(rows))
    return 0 if all(row[RESULT] == "exact" for row in rows) else 5


def _row(case: Case) -> dict[str, object]:
    return {
        "model": case.model,
        "dtype": case.dtype,
        "target": case.target,
        "delegates": case.delegates,
        "on the CPU": len(case.cpu_ops),
        RESULT: case.differences[0] if case.differences else "exact",
    }


if __name__ == "__main__":
    sys.exit(main())

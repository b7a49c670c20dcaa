# SPDX-License-Identifier: Apache-2.0
"""Time of the NPU model against tosa_reference_model on the same delegates and inputs, in one process.

    python tests/bench/npu_speed.py [--model mobilenet_v2] [--target ethos-u85-256] [--runs 5]

Prints each side's median and the ratio ours / reference, pair by pair. The first run of ours, which
decodes the weights (no disk cache), is listed apart.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["ARMDEPLOY_CACHE"] = "off"  # before npu is imported: decoded weights must not come from disk

import numpy as np

from fvp import tosa
from npu.config import npu_config
from npu.container import VelaBin, parse_velabin
from npu.machine import execute
from report import compile_report, pte


def main() -> int:
    """Compile, time both sides in turn, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="mobilenet_v2")
    parser.add_argument("--target", default="ethos-u85-256")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = _compile(arguments.model, arguments.target, Path(folder))
        graph = report.tosa[0].read_bytes()
        program = pte.load(report.pte)
    delegate = parse_velabin(program.method().delegates[0].blob, program.named_data)
    _compare(delegate, graph, arguments)
    return 0


def _compile(model: str, target: str, folder: Path) -> compile_report.CompileReport:
    command = [sys.executable, "-m", "aot.compile", "-m", model, "-t", target, "-o", str(folder)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    (path,) = folder.glob("*" + compile_report.SUFFIX)
    report = compile_report.load(path)
    if len(report.tosa) != 1:
        raise SystemExit(f"{model} has {len(report.tosa)} delegates; this benchmark compares one")
    return report


def _compare(delegate: VelaBin, graph: bytes, arguments: argparse.Namespace) -> None:
    config = npu_config(arguments.target)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-128, 128, t.shape).astype(t.dtype) for t in tosa.signature(graph).inputs]
    ours = lambda: execute(delegate, config, inputs)  # noqa: E731
    reference = lambda: tosa.run_reference(graph, inputs)  # noqa: E731
    first, outputs = _timed(ours)
    expected = reference()
    if [o.tobytes() for o in outputs] != [e.tobytes() for e in expected]:
        raise SystemExit("outputs differ: a time for a wrong result is worth nothing")
    pairs = [(_timed(ours)[0], _timed(reference)[0]) for _ in range(arguments.runs)]
    ratios = sorted(a / b for a, b in pairs)
    print(f"{arguments.model} on {arguments.target}, {arguments.runs} pairs, outputs equal")
    print(f"first run of ours, weights decoded: {first:.3f} s")
    print(f"ours                 median {statistics.median(a for a, _ in pairs):.3f} s")
    print(f"tosa_reference_model median {statistics.median(b for _, b in pairs):.3f} s")
    print(f"ratio median {statistics.median(ratios):.3f}, {ratios[0]:.3f} to {ratios[-1]:.3f}")


def _timed(call: Callable[[], list]) -> tuple[float, list]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Time of the NPU model against tosa_reference_model on the same delegates and inputs, in one process.

    python tests/bench/npu_speed.py [--models mobilenet_v2,unet] [--targets ethos-u85-256] [--runs 5]

Prints for each network both medians and the median, least and largest ratio ours / reference of the pairs,
and the geometric mean of the median ratios. The first run of ours, which decodes the weights (no disk cache),
is listed apart. Exit code 6 when the mean is above the limit.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ["ARMDEPLOY_CACHE"] = "off"  # before npu is imported: decoded weights must not come from disk

import numpy as np

from fvp import tosa
from npu.config import npu_config
from npu.container import VelaBin, parse_velabin
from npu.machine import execute
from report import compile_report, pte
from report.tables import table

MODELS = "mobilenet_v2,resnet8,unet,transformer_encoder"
TARGETS = "ethos-u55-128,ethos-u85-256"
LIMIT = 0.5


@dataclass(frozen=True)
class Timing:
    """Seconds of one network: `pairs` of (ours, reference), and our first run."""

    model: str
    target: str
    first: float
    pairs: tuple[tuple[float, float], ...]

    @property
    def ratios(self) -> list[float]:
        """Of each pair, in ascending order."""
        return sorted(ours / reference for ours, reference in self.pairs)

    def row(self) -> dict[str, object]:
        """For the table."""
        low, high = self.ratios[0], self.ratios[-1]
        return {
            "model": self.model,
            "target": self.target,
            "first s": f"{self.first:.3f}",
            "ours s": f"{statistics.median(a for a, _ in self.pairs):.4f}",
            "reference s": f"{statistics.median(b for _, b in self.pairs):.4f}",
            "ratio": f"{statistics.median(self.ratios):.3f} ({low:.3f} to {high:.3f})",
        }


def main() -> int:
    """Compile, time both sides in turn, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--programs", type=Path, metavar="FOLDER", help="take the programs from here, if there"
    )
    arguments = parser.parse_args()
    timings = [
        timing
        for model in arguments.models.split(",")
        for timing in _timings(model, arguments.targets.split(","), arguments.runs, arguments.programs)
    ]
    mean = math.exp(statistics.fmean(math.log(statistics.median(t.ratios)) for t in timings))
    print(table([timing.row() for timing in timings]))
    print(f"geometric mean of the median ratios: {mean:.3f} (at most {LIMIT}); all outputs equal")
    return 0 if mean <= LIMIT else 6


def _timings(model: str, targets: Sequence[str], runs: int, programs: Path | None) -> Iterator[Timing]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = programs or Path(temporary)
        for report in _compile(model, targets, folder):
            program = pte.load(report.pte)
            delegate = parse_velabin(program.method().delegates[0].blob, program.named_data)
            yield _compare(model, report.target, delegate, report.tosa[0].read_bytes(), runs)


def _compile(model: str, targets: Sequence[str], folder: Path) -> Iterator[compile_report.CompileReport]:
    reports = [folder / f"{model}_arm_delegate_{target}{compile_report.SUFFIX}" for target in targets]
    if not all(path.is_file() for path in reports):
        command = [sys.executable, "-m", "aot.compile", "-m", model, "-t", ",".join(targets)]
        subprocess.run([*command, "-o", str(folder)], check=True, stdout=sys.stderr)
    for path in reports:
        report = compile_report.load(path)
        if len(report.tosa) != 1:
            raise SystemExit(f"{model} has {len(report.tosa)} delegates; this benchmark compares one")
        yield report


def _compare(model: str, target: str, delegate: VelaBin, graph: bytes, runs: int) -> Timing:
    config = npu_config(target)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-128, 128, t.shape).astype(t.dtype) for t in tosa.signature(graph).inputs]
    ours = lambda: execute(delegate, config, inputs)  # noqa: E731
    reference = lambda: tosa.run_reference(graph, inputs)  # noqa: E731
    first, outputs = _timed(ours)
    if [o.tobytes() for o in outputs] != [e.tobytes() for e in reference()]:
        raise SystemExit("outputs differ: a time for a wrong result is worth nothing")
    return Timing(model, target, first, tuple((_timed(ours)[0], _timed(reference)[0]) for _ in range(runs)))


def _timed(call: Callable[[], list]) -> tuple[float, list]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


if __name__ == "__main__":
    sys.exit(main())

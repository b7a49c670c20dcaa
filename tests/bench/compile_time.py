# SPDX-License-Identifier: Apache-2.0
"""Compile time of ``aot/compile.py`` beside ExecuTorch's own compiler script, same model and options.

Whole processes in turn, from start to exit, several pairs; prints the ratio ours / theirs of each pair's wall
and CPU time. CPU time is the better one on a busy machine.

    python tests/bench/compile_time.py --model ds_cnn --target ethos-u85-256 --pairs 5
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THEIRS = ["-m", "executorch.backends.arm.scripts.aot_arm_compiler", "-q", "-d"]
OURS = ["aot/compile.py"]


def main() -> int:
    """Time the pairs, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="ds_cnn")
    parser.add_argument("--target", default="ethos-u85-256")
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    options = ["-m", f"examples/{arguments.model}.py", "-t", arguments.target]
    pairs = [(_timed(OURS + options), _timed(THEIRS + options)) for _ in range(arguments.pairs)]
    print(f"{arguments.model} for {arguments.target}, {arguments.pairs} pairs of whole processes")
    for index, kind in enumerate(("wall", "cpu")):
        ours, theirs = ([times[side][index] for times in pairs] for side in (0, 1))
        ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
        print(
            f"{kind:4}  ours median {statistics.median(ours):.1f} s, "
            f"aot_arm_compiler {statistics.median(theirs):.1f} s, "
            f"ratio median {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        )
    return 0


def _timed(arguments: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one run that succeeds."""
    with tempfile.TemporaryDirectory() as folder:
        before, start = _children_cpu(), time.monotonic()
        command = [sys.executable, *arguments, "-o", folder]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - start, _children_cpu() - before
        if result.returncode or not list(Path(folder).glob("*.pte")):
            raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr}")
    return seconds


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())

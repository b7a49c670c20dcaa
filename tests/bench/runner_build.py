# SPDX-License-Identifier: Apache-2.0
"""Times of a build of arm_executor_runner: cold, after one changed file, without a change.

    python -m tests.bench.runner_build [--board corstone-320] [--all-kernels]

The aims for firmware whose program is all on the NPU: 20 s cold on two cores, 3 s after a change.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from fvp.virtual import runner_build
from fvp.virtual.tools import CACHE_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
NPU_ONLY = ROOT / "tests" / "data" / "runner" / "two_u85_256.pte"
CHANGED = "main.cpp.obj"


def _seconds(request: runner_build.RunnerBuild) -> float:
    start = time.perf_counter()
    runner_build.build(request)
    return time.perf_counter() - start


def measure(request: runner_build.RunnerBuild) -> dict[str, float]:
    """Seconds of every kind of build."""
    times = {"cold": _seconds(request)}
    next(request.folder().glob(f"CMakeFiles/**/runner/{CHANGED}")).unlink()
    times["one file changed"] = _seconds(request)
    times["no change"] = _seconds(request)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--board", default="corstone-320")
    parser.add_argument("--all-kernels", action="store_true", help="every kernel, not those of a program")
    arguments = parser.parse_args()
    programs = () if arguments.all_kernels else (NPU_ONLY,)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE_VARIABLE] = folder
        os.environ["CCACHE_DISABLE"] = "1"  # cold means compiled
        request = runner_build.RunnerBuild(arguments.board, "Sram_Only", programs)
        for kind, seconds in measure(request).items():
            print(f"{kind:<18} {seconds:6.2f} s   (load average {os.getloadavg()[0]:.1f})")


if __name__ == "__main__":
    main()

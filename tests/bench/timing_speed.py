# SPDX-License-Identifier: Apache-2.0
"""CPU time of the cycle model against that of the functional model, side by side in one process.

    python tests/bench/timing_speed.py PROGRAM.pte [--runs 9]

Prints the ratio estimate / execution of the first run in the process and of those after it (the aim is at
most 0.3), and the time of ``armdeploy profile --timing-only`` for the same file, after imports (the aim is
less than 0.3 s). As in the device, both sides share a stream that is decoded once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from armdeploy import profile
from armdeploy.main import main as armdeploy
from npu.container import VelaBin, parse_velabin
from npu.machine import execute
from npu.program import from_payload
from npu.timing import estimate, memory_map, profile_for
from report import pte


def main() -> int:
    """Time both in turn, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=Path)
    parser.add_argument("--system-config", default="Ethos_U85_SYS_DRAM_Mid")
    parser.add_argument("--memory-mode", default="Sram_Only")
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    program = pte.load(arguments.program)
    delegate = parse_velabin(program.method().delegates[0].blob, program.named_data)
    print(f"{arguments.program}, {arguments.system_config}, {arguments.memory_mode}, CPU time")
    _compare(delegate, arguments)
    _profile(arguments)
    return 0


def _compare(delegate: VelaBin, arguments: argparse.Namespace) -> None:
    config, _ = from_payload(delegate.cmd_data)
    adapters = profile_for(arguments.system_config, arguments.memory_mode)
    memory = memory_map(arguments.memory_mode)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(0, 256, spec.size, np.uint8) for spec in delegate.inputs]
    run = lambda: execute(delegate, config, inputs)  # noqa: E731
    model = lambda: estimate(from_payload(delegate.cmd_data)[1], config, adapters, memory)  # noqa: E731
    first_run, first_model = _timed(run), _timed(model)
    print(f"first run: {first_model:.3f} s / {first_run:.3f} s = {first_model / first_run:.3f}")
    pairs = [(_timed(model), _timed(run)) for _ in range(arguments.runs)]
    ratios = sorted(a / b for a, b in pairs)
    print(f"cycle model      median {statistics.median(a for a, _ in pairs):.3f} s")
    print(f"functional model median {statistics.median(b for _, b in pairs):.3f} s")
    print(f"ratio median {statistics.median(ratios):.3f}, {ratios[0]:.3f} to {ratios[-1]:.3f}")


def _profile(arguments: argparse.Namespace) -> None:
    words = ["profile", str(arguments.program), "--timing-only"]
    assert profile is not None  # imported: what is timed starts after that
    times = []
    for _ in range(arguments.runs):
        with contextlib.redirect_stdout(io.StringIO()):
            times.append(_timed(lambda: armdeploy(words)))
    print(f"armdeploy profile --timing-only: first {times[0]:.3f} s, median {statistics.median(times):.3f} s")


def _timed(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


if __name__ == "__main__":
    raise SystemExit(main())

# SPDX-License-Identifier: Apache-2.0
"""What a run on the virtual Corstone costs beside the execution of the NPU's jobs.

    python -m tests.bench.virtual_overhead [--target T] [--repeat N] [PROGRAM.pte ...]

Prints for each program the fastest of N runs: wall time from the start of QEMU to the outputs, the part spent
in the NPU model, the rest, the ratio of the first two, and how often the simulated CPU stopped. With
--repeat 1 it is the first run of a process. The processor times hardly depend on what else the machine does:
QEMU's, and this process's without the NPU's jobs.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fvp.inputs import random_inputs
from fvp.platform import Job
from fvp.virtual.devices.npu import EthosU
from fvp.virtual.run import VirtualCorstone
from report import pte

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True)
class Cost:
    """Seconds of one run; `stops` counts."""

    wall: float
    npu: float
    qemu_cpu: float
    own_cpu: float
    stops: int


class NpuClock:
    """Processor time of the NPU's jobs, taken around the device's own method."""

    def __init__(self) -> None:
        self.seconds = 0.0
        run = EthosU._run

        def timed(device: EthosU, value: int) -> None:
            start = time.process_time()
            run(device, value)
            self.seconds += time.process_time() - start

        EthosU._run = timed  # type: ignore[method-assign]


def job_of(path: Path, target: str) -> Job:
    """A job with random inputs."""
    method = pte.load(path).method()
    inputs = random_inputs(method.tensors(method.inputs), seed=0)
    specs = tuple((tensor.shape, np.dtype(tensor.dtype)) for tensor in method.tensors(method.outputs))
    return Job(path, target, inputs, 120.0, False, specs)


def measure(job: Job, clock: NpuClock) -> Cost:
    """One run."""
    npu, own = clock.seconds, time.process_time()
    children = _children()
    outcome = VirtualCorstone().run(job)
    own = time.process_time() - own - (clock.seconds - npu)
    return Cost(outcome.wall_seconds, outcome.npu_seconds, _children() - children, own, outcome.stops)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", type=Path, default=[DATA / "two_conv_u85_256.pte"])
    parser.add_argument("--target", default="ethos-u85-256")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    clock = NpuClock()
    print("program                          wall    npu  beside  ratio   cpu: qemu    own   stops")
    for path in arguments.programs:
        job = job_of(path, arguments.target)
        best = min(
            (measure(job, clock) for _ in range(arguments.repeat)), key=lambda cost: cost.wall - cost.npu
        )
        figures = (
            best.wall,
            best.npu,
            best.wall - best.npu,
            best.wall / best.npu,
            best.qemu_cpu,
            best.own_cpu,
        )
        print(
            f"{path.stem:30}"
            + "{:7.3f}{:7.3f}{:8.3f}{:7.2f}{:12.3f}{:7.3f}".format(*figures)
            + f"{best.stops:8}"
        )


if __name__ == "__main__":
    main()

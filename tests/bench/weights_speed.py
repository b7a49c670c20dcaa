# SPDX-License-Identifier: Apache-2.0
"""CPU time to decode a model's weights, against Arm's decoder in C (ethosu.mlw_codec) on the same streams.

    python tests/bench/weights_speed.py [--model mobilenet_v2] [--targets ethos-u55-128,ethos-u85-256]

Ours is `npu.weights.decode_weights` with empty caches: streams to tensors, weight order included. The decoder
in C turns standard streams into lists of numbers in stream order; it has no fast format, so those streams are
counted on our side only. `unpack` is the part of ours that both do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

os.environ["ARMDEPLOY_CACHE"] = "off"  # nothing may come from disk

import numpy as np
from ethosu import mlw_codec

from npu import machine
from npu.config import npu_config
from npu.container import parse_velabin
from npu.execution import Execution
from npu.operation import Operation
from npu.ops import weights as op_weights
from npu.weights import WeightFormat, WeightLayout, clear_memory, decode_weights
from npu.weights.mlw import decode_standard
from report import compile_report, pte

Fetch = tuple[WeightLayout, tuple[bytes, ...]]


def main() -> int:
    """Compile, collect the weight fetches, time both sides in turn, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="mobilenet_v2")
    parser.add_argument("--targets", default="ethos-u55-128,ethos-u85-256")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "aot.compile", "-m", arguments.model, "-t", arguments.targets]
        subprocess.run([*command, "-o", folder], check=True, stdout=sys.stderr)
        for path in sorted(Path(folder).glob("*" + compile_report.SUFFIX)):
            report = compile_report.load(path)
            _compare(f"{arguments.model} {report.target}", _fetches(report), arguments.runs)
    return 0


def _fetches(report: compile_report.CompileReport) -> list[Fetch]:
    """Every distinct weight fetch of the program; only data movement is executed."""
    program = pte.load(report.pte)
    found: dict[Fetch, None] = {}

    def collect(run: Execution, op: Operation) -> int:
        if op.weights is not None:  # a matrix product has none
            found[op_weights.load_weights(run, op)] = None
        return 0

    execute = {name: lambda run, op: 0 for name in machine.EXECUTE}
    execute |= {"OP_CONV": collect, "OP_DEPTHWISE": collect, "OP_DMA_START": machine.EXECUTE["OP_DMA_START"]}
    with (
        mock.patch.object(machine, "EXECUTE", execute),
        mock.patch.object(op_weights, "_prepare", lambda layout, streams, largest: (layout, streams)),
    ):
        for delegate in program.method().delegates:
            binary = parse_velabin(delegate.blob, program.named_data)
            inputs = [np.zeros(int(np.prod(t.shape)) * t.elem_size, np.uint8) for t in binary.inputs]
            machine.execute(binary, npu_config(report.target), inputs)
    return list(found)


def _compare(title: str, fetches: Sequence[Fetch], runs: int) -> None:
    standard = [
        (stream, mlw_codec.decode(bytearray(stream)))
        for layout, streams in fetches
        if layout.weight_format is WeightFormat.STANDARD
        for stream in streams
        if stream
    ]
    for stream, expected in standard:
        if decode_standard(stream, len(expected)).tolist() != expected:
            raise SystemExit("weights differ: a time for a wrong result is worth nothing")
    counted = [(stream, len(expected)) for stream, expected in standard]
    sides: dict[str, Callable[[], object]] = {
        "ours, streams to tensors": lambda: (clear_memory(), [decode_weights(*fetch) for fetch in fetches]),
        "ours, unpack": lambda: [decode_standard(stream, count) for stream, count in counted],
        "mlw_codec.decode": lambda: [mlw_codec.decode(bytearray(stream)) for stream, _ in counted],
    }
    times = [{name: _seconds(side) for name, side in sides.items()} for _ in range(runs)]
    weights = sum(layout.size for layout, _ in fetches)
    fast = sum(layout.size for layout, _ in fetches if layout.weight_format is WeightFormat.FAST)
    print(
        f"{title}: {len(fetches)} fetches, {weights} weights, {fast} of them in the fast format, {runs} runs"
    )
    for name in sides:
        seconds = [run[name] for run in times]
        ratios = [run[name] / run["mlw_codec.decode"] for run in times]
        print(f"  {name:25} median {statistics.median(seconds):.3f} s, ratio {statistics.median(ratios):.2f}")


def _seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())

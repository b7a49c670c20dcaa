# SPDX-License-Identifier: Apache-2.0
"""LiteRT's reference kernels as oracle. Runs in an environment of its own, with only NumPy and LiteRT.

    python litert_worker.py JOBS.json

JOBS is a list of {"model": path, "inputs": [npz, ...], "outputs": [npz, ...]}; an npz has arrays 0, 1, ... in
the order of the model's inputs or outputs. Releases from 1.3.0 on round FULLY_CONNECTED differently, and the
default kernels are not bit-exact by design, so version and resolver are fixed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def run(model: str, inputs: list[str], outputs: list[str]) -> None:
    """Interpret one model on several sets of inputs."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=model,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        num_threads=1,
    )
    interpreter.allocate_tensors()
    places = [detail["index"] for detail in interpreter.get_input_details()]
    results = [detail["index"] for detail in interpreter.get_output_details()]
    for source, target in zip(inputs, outputs, strict=True):
        with np.load(source) as arrays:
            for number, place in enumerate(places):
                interpreter.set_tensor(place, arrays[str(number)])
        interpreter.invoke()
        np.savez(target, **{str(n): interpreter.get_tensor(place) for n, place in enumerate(results)})


if __name__ == "__main__":
    for job in json.loads(Path(sys.argv[1]).read_text()):
        try:
            run(**job)
        except (ValueError, RuntimeError) as error:
            sys.exit(f"{job['model']}: {error}")

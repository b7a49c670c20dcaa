# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/golden and tests/data/corrupt anew with the installed tools.

Run `python -m oracle.make_golden` from tests/ with the repository root on PYTHONPATH.
"""

from __future__ import annotations

import sys
from pathlib import Path

from oracle import reference, streams
from oracle.cache import lower

sys.path.insert(0, str(Path(__file__).parents[1] / "npu"))
import corrupt
import golden

_SEED = 1


def make_golden(name: str) -> golden.Golden:
    """Compile one of `golden.NAMES`, which is MODEL__NPU."""
    model, npu = name.split("__")
    (graph,) = lower(model, npu)
    inputs = reference.random_inputs(graph, _SEED)
    outputs = reference.run_reference(graph, inputs)
    return golden.Golden(npu, streams.compile_tosa(graph, npu), tuple(inputs), tuple(outputs))


def main() -> None:
    """Write every file."""
    for name in golden.NAMES:
        golden.save(name, make_golden(name))
    golden.CORRUPT_FOLDER.mkdir(parents=True, exist_ok=True)
    container = golden.load(golden.CORRUPTIBLE).container
    for name, corruption in corrupt.CORRUPTIONS.items():
        (golden.CORRUPT_FOLDER / f"{name}.bin").write_bytes(corruption(container))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Write expected.json: digests of LiteRT's outputs, so that tests need neither LiteRT nor its environment.

python -m tests.litert.record
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fvp import litert
from tests.litert import tflite_models

EXPECTED = Path(__file__).with_name("expected.json")
SEEDS = tuple(range(10))


def digests(outputs: Sequence[Sequence[np.ndarray]]) -> list[str]:
    """For each set of inputs, one digest over all outputs."""
    return [hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest() for arrays in outputs]


def model_inputs(model: Path) -> list[list[np.ndarray]]:
    """The seeded sets of inputs."""
    return tflite_models.input_sets(model, SEEDS)


def prepared(folder: Path) -> dict[str, Path]:
    """Name -> copy of every public model, repaired where LiteRT needs it."""
    result = {}
    for source in sorted(tflite_models.MODELS.glob("*.tflite")):
        result[source.stem] = folder / source.name
        result[source.stem].write_bytes(tflite_models.repaired(source.read_bytes()))
    return result


def main() -> None:
    """Run LiteRT on every model and write the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = prepared(folder)
        jobs = {path: model_inputs(path) for path in models.values()}
        outputs = litert.outputs(jobs, folder)
    expected = {name: digests(outputs[path]) for name, path in models.items()}
    EXPECTED.write_text(json.dumps({"litert": litert.VERSION, "models": expected}, indent=1) + "\n")


if __name__ == "__main__":
    main()

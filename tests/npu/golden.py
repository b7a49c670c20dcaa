# SPDX-License-Identifier: Apache-2.0
"""Golden delegates of tests/data/golden: Vela's output for our own small models, with reference outputs.

`python -m oracle.make_golden` (from tests/) writes them anew.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "data" / "golden"
CORRUPT_FOLDER = Path(__file__).parents[1] / "data" / "corrupt"
MODELS = ("separable_block", "conv3x3_stride2_shallow", "sigmoid", "add_broadcast_channel")
NPUS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")
NAMES = tuple(f"{model}__{npu}" for model in MODELS for npu in NPUS)
CORRUPTIBLE = "separable_block__ethos-u85-256"
"""The one that tests/data/corrupt is made of."""


@dataclass(frozen=True)
class Golden:
    """One delegate: its VelaBin container, one set of inputs and what comes out."""

    npu: str
    container: bytes
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


def load(name: str) -> Golden:
    """Read one of `NAMES`."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        inputs, outputs = (
            tuple(arrays[key] for key in sorted(arrays) if key.startswith(kind))
            for kind in ("input", "output")
        )
        return Golden(name.split("__")[1], arrays["container"].tobytes(), inputs, outputs)


def save(name: str, golden: Golden) -> None:
    """Write one golden delegate."""
    arrays = {"container": np.frombuffer(golden.container, np.uint8)}
    arrays |= _numbered("input", golden.inputs) | _numbered("output", golden.outputs)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.npz").write_bytes(buffer.getvalue())


def _numbered(kind: str, arrays: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{kind}_{number}": array for number, array in enumerate(arrays)}

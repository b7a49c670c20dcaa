# SPDX-License-Identifier: Apache-2.0
"""TOSA flatbuffers as plain dictionaries and back, by tosa-tools' own flatc and schema."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tosa_reference_model

BINARIES = Path(tosa_reference_model.__file__).parents[1] / "bin"
SCHEMA = BINARIES / "tosa.fbs"

_STORED = {"BOOL": "u1", "INT4": "u1", "INT8": "i1", "INT16": "<i2", "INT32": "<i4"}


class Graph:
    """The one block of an operator test.

    Attributes:
        content: the whole flatbuffer as flatc's JSON.
        block: the first block: operators, tensors, inputs, outputs.
    """

    def __init__(self, path: Path):
        with tempfile.TemporaryDirectory() as folder:
            _flatc("--json", "--raw-binary", "--strict-json", "-o", folder, SCHEMA, "--", path)
            self.content: dict[str, Any] = json.loads(Path(folder, f"{path.stem}.json").read_text())
        self.block: dict[str, Any] = self.content["regions"][0]["blocks"][0]

    def save(self, path: Path) -> None:
        """Write the flatbuffer."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, f"{path.stem}.json")
            source.write_text(json.dumps(self.content))
            _flatc("-b", "-o", path.parent, SCHEMA, source)

    def operators(self, kind: str) -> Iterator[dict[str, Any]]:
        """Operators of one kind, such as CONV2D."""
        return (op for op in self.block["operators"] if op["op"] == kind)

    def tensor(self, name: str) -> dict[str, Any]:
        """Tensor by name.

        Raises:
            KeyError: no such tensor.
        """
        for tensor in self.block["tensors"]:
            if tensor["name"] == name:
                return tensor
        raise KeyError(name)

    def constant(self, name: str) -> np.ndarray:
        """Flat values of a constant tensor; 48-bit ones as int64."""
        tensor = self.tensor(name)
        raw = np.array(tensor["data"], np.uint8)
        if tensor["type"] == "INT48":
            return _from_48(raw)
        data = raw.view(_STORED[tensor["type"]])
        return data[: int(np.prod(tensor["shape"]))] if tensor["shape"] else data

    def set_constant(self, name: str, values: np.ndarray) -> None:
        """Replace the values of a constant tensor."""
        tensor = self.tensor(name)
        tensor["data"] = _bytes_of(values, tensor["type"])

    def add_tensor(self, name: str, kind: str, shape: list[int], values: np.ndarray | None = None) -> str:
        """Append a tensor, with its CONST operator if it has values; its name."""
        tensor = {"name": name, "shape": shape, "type": kind, "variable": False, "is_unranked": False}
        if values is not None:
            tensor["data"] = _bytes_of(values, kind)
            self.add_operator("CONST", "ConstAttribute", {}, [], [name], first=True)
        self.block["tensors"].append(tensor)
        return name

    def add_operator(
        self,
        kind: str,
        attribute_type: str,
        attribute: dict[str, Any],
        inputs: list[str],
        outputs: list[str],
        *,
        first: bool = False,
    ) -> None:
        """Append an operator, or put it in front of all."""
        op = {"op": kind, "attribute_type": attribute_type, "attribute": attribute}
        op |= {"inputs": inputs, "outputs": outputs}
        operators = self.block["operators"]
        operators.insert(0 if first else len(operators), op)


def _flatc(*arguments: str | Path) -> None:
    subprocess.run([BINARIES / "flatc", *map(str, arguments)], check=True, capture_output=True)


def _from_48(raw: np.ndarray) -> np.ndarray:
    padded = np.zeros((len(raw) // 6, 8), np.uint8)
    padded[:, :6] = raw[: len(raw) // 6 * 6].reshape(-1, 6)
    padded[:, 6:] = np.where(padded[:, 5:6] & 0x80, 0xFF, 0)
    return padded.reshape(-1).view("<i8")


def _bytes_of(values: np.ndarray, kind: str) -> list[int]:
    """Raw bytes as the flatbuffer stores them, padded to a multiple of eight."""
    if kind == "INT48":
        wide = values.astype("<i8").view(np.uint8).reshape(-1, 8)
        raw = wide[:, :6].tobytes()
    else:
        raw = values.astype(_STORED[kind]).tobytes()
    return list(raw + bytes(-len(raw) % 8))

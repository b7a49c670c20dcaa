# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite models: their inputs, and their outputs by LiteRT and by the NPU model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fvp import litert
from npu.config import Family, npu_config
from npu.container import load_raw_npz
from npu.machine import execute
from report.quiet import quiet

ROOT = Path(__file__).parents[2]
MODELS = ROOT.parent / "shared" / "data" / "tflite"
"""Folder of the public models, beside the repository."""
NPUS = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-512", "ethos-u85-256", "ethos-u85-2048")
NO_INTERPRETER = f"no environment with ai-edge-litert {litert.VERSION} (setup.sh --enable-litert)"
_SYSTEMS = {
    Family.U55: ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    Family.U65: ("Ethos_U65_High_End", "Dedicated_Sram"),
    Family.U85: ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
}


@dataclass(frozen=True)
class Port:
    """An input or output of a model."""

    shape: tuple[int, ...]
    dtype: np.dtype


_TYPES = {1: np.dtype("<i4"), 3: np.dtype("u1"), 7: np.dtype("<i2"), 9: np.dtype("i1")}


def inputs_of(model: bytes) -> list[Port]:
    """The model's inputs, in its order."""
    from ethosu.vela.tflite.Model import Model

    graph = Model.GetRootAs(bytearray(model)).Subgraphs(0)
    tensors = [graph.Tensors(graph.Inputs(i)) for i in range(graph.InputsLength())]
    return [Port(tuple(t.ShapeAsNumpy().tolist()), _TYPES[t.Type()]) for t in tensors]


def repaired(model: bytes) -> bytes:
    """The model with the quantised axis of one-dimensional tensors set to 0.

    LiteRT refuses person_detect otherwise: its biases say axis 3. Vela takes no notice of the field.
    """
    from ethosu.vela.tflite.Model import Model

    data = bytearray(model)
    graph = Model.GetRootAs(data).Subgraphs(0)
    for tensor in map(graph.Tensors, range(graph.TensorsLength())):
        scale = tensor.Quantization()
        if scale is not None and tensor.ShapeLength() == 1 and scale.QuantizedDimension():
            place = scale._tab.Pos + scale._tab.Offset(16)
            data[place : place + 4] = bytes(4)
    return bytes(data)


def seeded_inputs(ports: Sequence[Port], seed: int) -> list[np.ndarray]:
    """Even seeds: uniform over the type's whole range. Odd ones: smooth and of low contrast, like images."""
    rng = np.random.default_rng(seed)
    return [(_smooth if seed % 2 else _uniform)(rng, port) for port in ports]


def _uniform(rng: np.random.Generator, port: Port) -> np.ndarray:
    info = np.iinfo(port.dtype)
    return rng.integers(info.min, info.max, port.shape, dtype=port.dtype, endpoint=True)


def _smooth(rng: np.random.Generator, port: Port) -> np.ndarray:
    info = np.iinfo(port.dtype)
    walk = np.cumsum(rng.normal(0, 1, int(np.prod(port.shape))))
    values = rng.uniform(0.2, 0.8) * (float(info.max) - info.min) + info.min + 4 * walk
    return values.clip(info.min, info.max).round().astype(port.dtype).reshape(port.shape)


def compile_model(model: Path, npu: str, folder: Path) -> Path:
    """Vela's raw result.

    Raises:
        RuntimeError: Vela refuses the model or leaves an operator to the CPU.
    """
    from ethosu.vela import vela

    system, memory = _SYSTEMS[npu_config(npu).family]
    arguments = [str(model), f"--accelerator-config={npu}", "--output-format=raw", f"--output-dir={folder}"]
    arguments += ["--config=Arm/vela.ini", f"--system-config={system}", f"--memory-mode={memory}"]
    try:
        with quiet() as log:
            vela.main(arguments)
    except (RuntimeError, SystemExit) as error:
        raise RuntimeError(f"Vela refuses {model.name} for {npu}: {error}") from error
    result = folder / f"{model.stem}_vela.npz"
    if not result.exists():
        raise RuntimeError(f"Vela made nothing of {model.name}: {log.text[-300:]}")
    return result


def npu_outputs(compiled: Path, npu: str, inputs: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """Outputs of the NPU model for each set of inputs."""
    binary = load_raw_npz(compiled)
    return [execute(binary, npu_config(npu), arrays) for arrays in inputs]

# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Lite models: their inputs, and their outputs by the NPU model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aot.vela_config import resolve_settings
from aot.vela_file import compile_file
from fvp import litert
from fvp.oracle import LitertOracle, seeded_inputs
from npu.config import npu_config
from npu.container import VelaBin
from npu.machine import execute

ROOT = Path(__file__).parents[2]
MODELS = ROOT.parent / "shared" / "data" / "tflite"
"""Folder of the public models, beside the repository."""
NPUS = ("ethos-u55-128", "ethos-u55-256", "ethos-u65-512", "ethos-u85-256", "ethos-u85-2048")
NO_INTERPRETER = f"no environment with ai-edge-litert {litert.VERSION} (setup.sh --enable-litert)"


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


def input_sets(model: Path, seeds: Sequence[int]) -> list[list[np.ndarray]]:
    """A set of inputs for each seed."""
    ports = LitertOracle(model).inputs
    return [seeded_inputs(ports, seed) for seed in seeds]


def compiled(model: Path, npu: str, folder: Path) -> VelaBin:
    """Vela's raw result with the family's default settings.

    Raises:
        CompileError: Vela refuses the model or leaves an operator to the CPU.
    """
    target = npu_config(npu)
    return compile_file(model, target, resolve_settings(target, None, None, None), folder).network


def npu_outputs(network: VelaBin, npu: str, inputs: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """Outputs of the NPU model for each set of inputs."""
    return [execute(network, npu_config(npu), arrays) for arrays in inputs]

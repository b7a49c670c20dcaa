# SPDX-License-Identifier: Apache-2.0
"""Makes the programs of tests/data/runner again, with ExecuTorch's own export:

    python tests/runtime/make_board_programs.py

Each is a small network that shows one thing of the Ethos-U delegate: several inputs and outputs, regions of
their own (COP2), blocks outside the blob, a fast scratch, CPU operators between two delegates, a bundled
program.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.ethosu.compile_spec import VelaExternalBlockPlacements
from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from fvp.host.executor import execute_method
from npu.config import npu_config
from report import pte

FOLDER = Path(__file__).resolve().parents[1] / "data" / "runner"
DIRECT_DRIVE = ["--separate-io-regions", "--cop-format=COP2"]


class TwoInTwoOut(torch.nn.Module):
    """A sum, its convolution and its half: two inputs, two outputs, all of it on the NPU."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + y
        return self.convolution(total), total * 0.5


class Split(torch.nn.Module):
    """Two convolutions with an operator between them that no Ethos-U has."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.fmod(self.first(x), 0.7))


def make(
    name: str, model: torch.nn.Module, target: str, *, inputs: int, outputs: int, **options: Any
) -> None:
    """Write a program; `outputs` of 0 leaves inputs and outputs in floating point."""
    torch.manual_seed(1)
    examples = tuple(torch.randn(1, 3, 8, 8) for _ in range(inputs))
    spec = EthosUCompileSpec(target, **options)
    quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config())
    exported = torch.export.export(model.eval(), examples, strict=False)
    prepared = prepare_pt2e(exported.module(check_guards=False), quantizer)
    prepared(*examples)
    quantized = torch.export.export(convert_pt2e(prepared), examples, strict=False)
    edge = to_edge_transform_and_lower(
        quantized,
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    if outputs:
        passes = [QuantizeInputs(edge, list(range(inputs))), QuantizeOutputs(edge, list(range(outputs)))]
        edge = edge.transform(passes)
    program = edge.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=False))
    (FOLDER / f"{name}.pte").write_bytes(program.buffer)


def _in_program(store: NamedDataStore, key: str, data: bytes, alignment: int, *_: Any, **__: Any) -> None:
    _ADD(store, key, data, alignment=alignment)


_ADD = NamedDataStore.add_named_data


def bundle(name: str, npu: str) -> None:
    """Write NAME.bpte: the program with random inputs and the outputs of the host reference."""
    path = FOLDER / f"{name}.pte"
    program = pte.load(path)
    method = program.method()
    shapes = [tensor.shape for tensor in method.tensors(method.inputs)]
    inputs = [torch.randint(-128, 128, shape, dtype=torch.int8) for shape in shapes]
    arrays = [tensor.numpy() for tensor in inputs]
    expected = execute_method(method, program.named_data, arrays, npu_config(npu)).outputs
    case = MethodTestCase(inputs=inputs, expected_outputs=[torch.from_numpy(array) for array in expected])
    suite = MethodTestSuite(method_name="forward", test_cases=[case])
    data = serialize_from_bundled_program_to_flatbuffer(BundledProgram(None, [suite], str(path)))
    (FOLDER / f"{name}.bpte").write_bytes(data)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    two, split = TwoInTwoOut(), Split()
    both = {"inputs": 2, "outputs": 2}
    make("two_u55_128", two, "ethos-u55-128", **both)
    make("two_u65_256", two, "ethos-u65-256", **both)
    make("two_u85_256", two, "ethos-u85-256", **both)
    make("two_u85_256_dedicated", two, "ethos-u85-256", memory_mode="Dedicated_Sram_384KB", **both)
    make("two_u85_256_direct", two, "ethos-u85-256", extra_flags=DIRECT_DRIVE, **both)
    placements = VelaExternalBlockPlacements(cmd_data="commands", weight_data="weights")
    with mock.patch.object(NamedDataStore, "add_named_data", _in_program):  # not in a .ptd beside it
        make("two_u85_256_external", two, "ethos-u85-256", external_block_placements=placements, **both)
    bundle("two_u85_256", "ethos-u85-256")
    make("split_u55_128", split, "ethos-u55-128", inputs=1, outputs=0)
    make("split_u85_256", split, "ethos-u85-256", inputs=1, outputs=0)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Make tests/data/fvp: small programs with what PyTorch's own quantised model answers.

    python -m tests.fvp.make_data

`mixed`: two inputs, two outputs, two delegates with an operator between that stays on the CPU.
`layouts`: an int8 program input beside a channels-last one, delegates' outputs in the program's own types.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

FOLDER = Path(__file__).parents[1] / "data" / "fvp"
TARGETS = ("ethos-u85-256", "ethos-u55-128")


class Mixed(nn.Module):
    """conv, ReLU on the NPU; fmod on the CPU; conv on the NPU. Beside it a sum of the inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 4, 3)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """[1, 3, 8, 8], [1, 8, 8] -> [1, 4, 6, 6], [1, 8, 8]."""
        return self.second(torch.fmod(torch.relu(self.first(x)), 0.7)), x[:, 0] + y


class Layouts(nn.Module):
    """A delegate fed in channels-last order, and an integer input that only the CPU sees."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """float [1, 3, 6, 6] channels-last, int8 [2, 5] -> [1, 4, 4, 4], int8 [2, 5]."""
        return self.conv(x), torch.bitwise_not(k)


def lower(model: nn.Module, inputs: tuple[Tensor, ...], target: str) -> tuple[bytes, list[np.ndarray]]:
    """The .pte, and the quantised model's answers."""
    spec = EthosUCompileSpec(target)
    quantizer = EthosUQuantizer(spec).set_global(get_symmetric_quantization_config(is_per_channel=True))
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(check_guards=False), quantizer)
    prepared(*inputs)
    quantized = convert_pt2e(prepared)
    program = to_edge_transform_and_lower(
        torch.export.export(quantized, inputs),
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    ).to_executorch()
    return program.buffer, [output.detach().numpy() for output in quantized(*inputs)]


def main() -> None:
    """Write every program and its inputs and outputs."""
    torch.manual_seed(0)
    x, k = torch.randn(1, 3, 6, 6), torch.randint(-128, 128, (2, 5), dtype=torch.int8)
    cases = {
        "mixed": (Mixed(), (torch.randn(1, 3, 8, 8), torch.randn(1, 8, 8))),
        "layouts": (Layouts(), (x.to(memory_format=torch.channels_last), k)),
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (model, inputs) in cases.items():
        for target in TARGETS:
            buffer, outputs = lower(model.eval(), inputs, target)
            stem = f"{name}_{target.removeprefix('ethos-').replace('-', '_')}"
            (FOLDER / f"{stem}.pte").write_bytes(buffer)
            arrays = {f"input{i}": a.numpy() for i, a in enumerate(inputs)}
            np.savez_compressed(FOLDER / stem, **arrays, **{f"output{i}": a for i, a in enumerate(outputs)})


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""From a torch module to Ethos-U command streams, keeping the TOSA graph of every delegate.

`lower` is ExecuTorch's own path (PT2E quantisation, Ethos-U partitioner, Arm passes) with the Vela call taken
out: the TOSA flatbuffer that Vela would get is the result. U55 and U65 share one TOSA specification, so two
lowerings serve all eleven NPUs; `compile_tosa` then runs Vela in process for one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import torch
from executorch.backends.arm.arm_vela import VelaCompileResult, vela_compile
from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
from executorch.backends.arm.quantizer import (
    EthosUQuantizer,
    get_symmetric_a16w8_quantization_config,
    get_symmetric_quantization_config,
)
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from aot.quicken import quickened
from report.quiet import quiet

NPUS = (
    "ethos-u55-32",
    "ethos-u55-64",
    "ethos-u55-128",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u65-512",
    "ethos-u85-128",
    "ethos-u85-256",
    "ethos-u85-512",
    "ethos-u85-1024",
    "ethos-u85-2048",
)
# ExecuTorch has one TOSA specification for U55 and U65 and one for U85; any NPU of it stands for all.
SPECIFICATIONS = {"u5x": "ethos-u55-128", "u85": "ethos-u85-256"}


class VelaRejection(Exception):
    """Vela did not produce a command stream; the text says why."""


def specification(npu: str) -> str:
    """The key in SPECIFICATIONS: `ethos-u65-512` -> `u5x`."""
    return "u85" if npu.startswith("ethos-u85") else "u5x"


def lower(
    module: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    npu: str,
    activation_bits: int = 8,
    samples: int = 2,
) -> tuple[bytes, ...]:
    """Quantise (weights int8 per channel, activations int8 or int16) and lower for NPUs like `npu`.

    Returns the TOSA flatbuffer of each delegate in order of execution; empty when nothing is delegated.
    Calibration uses the example inputs and `samples - 1` permutations of their values.
    """
    spec = EthosUCompileSpec(SPECIFICATIONS[specification(npu)])
    quantised = _quantise(module.eval(), tuple(inputs), spec, activation_bits, samples)
    # The delegate's payload becomes the TOSA graph itself: what Vela would have been given.
    keep_tosa = mock.patch(
        "executorch.backends.arm.ethosu.backend.vela_compile",
        lambda tosa, *args, **kwargs: VelaCompileResult(bytes(tosa)),
    )
    with keep_tosa, quiet(), quickened():
        program = torch.export.export(quantised, tuple(inputs), strict=False)
        edge = to_edge_transform_and_lower(
            program,
            partitioner=[EthosUPartitioner(spec)],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
    return tuple(_delegates(edge.exported_program().graph_module))


def _quantise(
    module: torch.nn.Module,
    inputs: tuple[torch.Tensor, ...],
    spec: EthosUCompileSpec,
    activation_bits: int,
    samples: int,
) -> torch.fx.GraphModule:
    configs = {8: get_symmetric_quantization_config, 16: get_symmetric_a16w8_quantization_config}
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(configs[activation_bits](is_per_channel=True))
    with torch.no_grad(), quiet(), quickened():
        # check_guards=False: the guard node that it adds otherwise breaks the Arm decomposition passes.
        graph = torch.export.export(module, inputs, strict=False).module(check_guards=False)
        prepared = prepare_pt2e(graph, quantizer)
        prepared(*inputs)
        generator = torch.Generator().manual_seed(0)
        for _ in range(samples - 1):
            prepared(*(_shuffled(tensor, generator) for tensor in inputs))
        return convert_pt2e(prepared)


def _shuffled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    order = torch.randperm(tensor.numel(), generator=generator)
    return tensor.flatten()[order].reshape(tensor.shape)


def _delegates(graph_module: torch.fx.GraphModule) -> Iterator[bytes]:
    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            attribute = getattr(graph_module, node.target)
            if isinstance(attribute, LoweredBackendModule):
                yield attribute.processed_bytes


def compile_tosa(tosa: bytes, npu: str, keep: Path | None = None, flags: Sequence[str] = ()) -> bytes:
    """Compile one TOSA graph with Vela as ExecuTorch does: the VelaBin container of the delegate.

    `keep` is a folder that receives Vela's own result (`output/out_vela.npz`); `flags` follow ExecuTorch's.
    Raises VelaRejection when Vela refuses the graph.
    """
    arguments = [*EthosUCompileSpec(npu).compiler_flags, *flags]
    folder = None if keep is None else str(keep)
    try:
        with quiet() as log:
            return vela_compile(tosa, arguments, intermediate_path=folder).processed_bytes
    except (SystemExit, Exception) as error:  # argparse exits, the back end raises what it likes
        raise VelaRejection(f"{npu}: {error!r} {log.text[-500:]}") from error

# SPDX-License-Identifier: Apache-2.0
"""A compiled network described as plain data: target, regions, operations with their bytes, commands.

Everything is read out of the stream; nothing is executed. All sizes are bytes, all offsets are byte offsets
in the driver payload, and every value is JSON-ready.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from npu.config import NpuConfig, from_config_word
from npu.container import TensorSpec, VelaBin
from npu.featuremap import FeatureMap
from npu.isa import Storage, Upscale
from npu.operation import DmaPlace, DmaTransfer, Function, Operation
from npu.ops.weights import layout_of
from npu.stream import Command, disassemble, parse
from npu.walk import Step, walk

REGIONS = {0: "constants", 1: "scratch", 2: "fast scratch"}
"""What the base pointers mean to Vela; further ones hold inputs and outputs ("direct drive")."""

_CONVOLUTIONS = ("OP_CONV", "OP_DEPTHWISE")


def describe(vela: VelaBin) -> dict[str, Any]:
    """The network as data: ``target``, ``stream``, ``regions``, ``inputs``, ``outputs``, ``operations``.

    Raises:
        NpuError: a malformed stream, or registers without a known meaning.
    """
    stream = parse(vela.cmd_data)
    config = from_config_word(stream.config_word)
    operations = [_operation(config, step) for step in walk(stream.commands, config.family)]
    return {
        "target": config.name,
        "config_word": f"{stream.config_word:#010x}",
        "id_word": f"{stream.id_word:#010x}",
        "stream": {
            "bytes": len(vela.cmd_data),
            "first_command": stream.base_offset,
            "commands": len(stream.commands),
            "by_kind": dict(Counter(o["name"] for o in operations)),
        },
        "regions": _regions(vela, operations),
        "inputs": [_tensor(spec) for spec in vela.inputs],
        "outputs": [_tensor(spec) for spec in vela.outputs],
        "operations": operations,
    }


def commands_of(vela: VelaBin) -> list[dict[str, Any]]:
    """Every command: offset, raw words, name, fields (enumerations by name) and its listing line.

    Raises:
        NpuError: a malformed stream.
    """
    stream = parse(vela.cmd_data)
    return [
        {**_command(command), "text": text}
        for command, text in zip(stream.commands, disassemble(stream), strict=True)
    ]


def _command(command: Command) -> dict[str, Any]:
    words = [command.word0] if command.payload is None else [command.word0, command.payload]
    fields = {name: getattr(value, "name", value) for name, value in command.fields.items()}
    return {
        "offset": command.offset,
        "words": [f"{word:08x}" for word in words],
        "name": command.name,
        "fields": fields,
    }


def _regions(vela: VelaBin, operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every region that something reads or writes, with its size where the container tells."""
    sizes = {0: len(vela.weight_data), 1: vela.scratch_size, 2: vela.fast_scratch_size}
    read: Counter[int] = Counter()
    written: Counter[int] = Counter()
    for operation in operations:
        read.update(operation["bytes_read"])
        written.update(operation["bytes_written"])
    used = {*read, *written, *(spec.region for spec in (*vela.inputs, *vela.outputs))}
    return [
        {
            "region": region,
            "holds": REGIONS.get(region, "inputs and outputs"),
            "bytes": sizes.get(region),
            "bytes_read": read[region],
            "bytes_written": written[region],
        }
        for region in sorted(used)
    ]


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    shape = list(spec.shape)
    while len(shape) > 1 and shape[0] == 1:  # padded on the left to six dimensions
        shape.pop(0)
    return {
        "shape": shape,
        "element_bytes": spec.elem_size,
        "region": spec.region,
        "offset": spec.offset,
        "bytes": spec.size,
    }


# --- operations ---------------------------------------------------------------------------------------------


def _operation(config: NpuConfig, step: Step) -> dict[str, Any]:
    mode = step.command.value("mode") if "mode" in step.command.spec.field else None
    common = {
        "id": step.number,
        "offset": step.command.offset,
        "name": step.command.name.removeprefix("OP_"),
        "mode": getattr(mode, "name", None),
        "registers_set": len(step.settings),
    }
    if isinstance(step.work, DmaTransfer):
        return common | _transfer(step.work)
    return common | _computation(config, step.work)


def _transfer(work: DmaTransfer) -> dict[str, Any]:
    size = work.length * work.size0 * work.size1
    read = Counter() if work.source.internal else Counter({work.source.region: size})
    if work.source.indexed or work.destination.indexed:
        read[work.index_region] += 4 * work.size0 * work.size1
    return {
        "source": _place(work.source),
        "destination": _place(work.destination),
        "length": work.length,
        "rows": work.size0,
        "planes": work.size1,
        "macs": 0,
        "bytes_read": dict(read),
        "bytes_written": {} if work.destination.internal else {work.destination.region: size},
    }


def _place(place: DmaPlace) -> dict[str, Any]:
    return {
        "region": None if place.internal else place.region,
        "address": place.address,
        "indexed": place.indexed,
    }


def _computation(config: NpuConfig, op: Operation) -> dict[str, Any]:
    weights = _weights(config, op) if op.command.name in _CONVOLUTIONS and op.weights else None
    read: Counter[int] = Counter()
    for source in (op.ifm, op.ifm2):
        if source is not None and _in_memory(source):
            read[source.region] += source.size
    if weights is not None and op.weights is not None:
        read[op.weights.region] += weights["bytes"]
        read[op.weights.scale_region] += weights["scale_bytes"]
    written = {op.ofm.region: op.ofm.size} if op.accumulator.output and _in_memory(op.ofm) else {}
    return {
        "ifm": _feature_map(op.ifm),
        "ifm2": _feature_map(op.ifm2) if op.ifm2 is not None else None,
        "ofm": _feature_map(op.ofm),
        "kernel": _kernel(op),
        "block": list(op.ofm_block),
        "microblock": list(op.accumulator.microblock),
        "blockdep": op.blockdep,
        "accumulator_bits": op.accumulator.bits,
        "accumulator": op.accumulator.source.name if op.accumulator.output else "KEPT",
        "activation": op.activation.function.value if op.activation.function is not Function.NONE else None,
        "transpose": op.transpose.name,
        "reverse": op.reverse.name,
        "weights": weights,
        "macs": _macs(op),
        "bytes_read": dict(read),
        "bytes_written": written,
    }


def _in_memory(fm: FeatureMap) -> bool:
    return fm.storage in (Storage.TILE_2X2, Storage.TILE_3X1)


def _feature_map(fm: FeatureMap) -> dict[str, Any]:
    return {
        "shape": list(fm.shape),
        "dtype": str(fm.dtype),
        "layout": fm.layout.name,
        "storage": fm.storage.name,
        "region": fm.region,
        "address": fm.bases[0],
        "zero_point": fm.zero_point,
        "scalar": fm.scalar if fm.storage is Storage.NONE else None,
    }


def _kernel(op: Operation) -> dict[str, Any]:
    kernel, pad = op.kernel, op.padding
    return {
        "taps": list(kernel.taps),
        "stride": [kernel.stride_y, kernel.stride_x],
        "dilation": [kernel.dilation_y, kernel.dilation_x],
        "padding": [pad.top, pad.left, pad.bottom, pad.right],
        "upscale": op.upscale.name if op.upscale is not Upscale.NONE else None,
    }


def _weights(config: NpuConfig, op: Operation) -> dict[str, Any]:
    """Coding and sizes of the weight streams; `ratio` is weights of one byte over coded bytes."""
    assert op.weights is not None
    layout = layout_of(config, op)
    size = sum(length for _, length in op.weights.streams[: layout.stream_count])
    return {
        "shape": list(layout.shape),
        "traversal": layout.traversal.value,
        "format": layout.weight_format.value,
        "sparse": layout.sparse,
        "streams": layout.stream_count,
        "bytes": size,
        "scale_bytes": sum(length for _, length in op.weights.scale_streams[: config.cores]),
        "weights": layout.size,
        "ratio": round(layout.size / size, 3) if size else None,
    }


def _macs(op: Operation) -> int:
    """Multiply-accumulates of a convolution: one for each result, tap and input channel."""
    if op.command.name not in _CONVOLUTIONS:
        return 0
    height, width, depth = op.ofm_shape
    channels = 1 if op.command.name == "OP_DEPTHWISE" else op.ifm.shape[2]
    return height * width * depth * op.kernel.taps[0] * op.kernel.taps[1] * channels

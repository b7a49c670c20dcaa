# SPDX-License-Identifier: Apache-2.0
"""What holds a compiled network: ExecuTorch's VelaBin delegate payload and Vela's raw `.npz` result."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from npu.errors import ContainerError

_HEADER = struct.Struct("<16sIB11x")
_TENSOR = struct.Struct("<9i")
_START = "vela_bin_stream"
_END = "vela_end_stream"
_MAX_RANK = 6
_MAX_BYTES = 1 << 32


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a compiled network.

    Attributes:
        shape: six dimensions, padded with ones on the left.
        elem_size: bytes per element (1, 2, 4 or 8).
        offset: byte offset in `region`, the base pointer that holds the tensor.
    """

    shape: tuple[int, ...]
    elem_size: int
    offset: int
    region: int

    @property
    def size(self) -> int:
        """Bytes."""
        count = self.elem_size
        for dim in self.shape:
            count *= dim
        return count


@dataclass(frozen=True)
class VelaBin:
    """A compiled network: command stream with driver header, constants, and where inputs and outputs live.

    Attributes:
        scratch_size: bytes of region 1.
        fast_scratch_size: bytes of region 2; None where the container does not say (ExecuTorch's does not).
    """

    cmd_data: bytes
    weight_data: bytes
    scratch_size: int
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    fast_scratch_size: int | None = None


def parse_velabin(blob: bytes, named_data: Mapping[str, bytes] | None = None) -> VelaBin:
    """Parse the processed bytes of an Ethos-U delegate.

    Args:
        blob: sequence of blocks, each a 32-byte header (name, size, external flag) and data padded to 16
            bytes.
        named_data: payloads of external blocks by their 64-digit SHA-256 key (the program's named-data map).

    Raises:
        ContainerError: truncated or malformed, a block missing or given twice, or an external payload not in
            `named_data`.
    """
    blocks: dict[str, tuple[int, bytes]] = {}
    for name, offset, data in _blocks(bytes(blob), named_data or {}):
        if name in blocks:
            raise ContainerError(f"block {name!r} occurs twice", offset=offset)
        blocks[name] = offset, data
    for name in ("cmd_data", "scratch_size", "inputs", "outputs"):
        if name not in blocks:
            raise ContainerError(f"no block {name!r}", offset=len(blob))
    return VelaBin(
        cmd_data=blocks["cmd_data"][1],
        weight_data=blocks.get("weight_data", (0, b""))[1],
        scratch_size=_scratch_size(*blocks["scratch_size"]),
        inputs=_tensors(*blocks["inputs"]),
        outputs=_tensors(*blocks["outputs"]),
    )


def _blocks(blob: bytes, named_data: Mapping[str, bytes]) -> Iterator[tuple[str, int, bytes]]:
    """(name, offset of the data, data) of every block between the start and the end mark."""
    offset = 0
    expect_start = True
    while True:
        if offset + _HEADER.size > len(blob):
            raise ContainerError("blob ends before the end mark", offset=offset)
        raw_name, size, external = _HEADER.unpack_from(blob, offset)
        name = raw_name.rstrip(b"\0").decode("ascii", "replace")
        start = offset + _HEADER.size
        if start + size > len(blob):
            raise ContainerError(f"block {name!r} of {size} bytes is truncated", offset=offset)
        if expect_start and name != _START:
            raise ContainerError(f"blob starts with {name!r}, not {_START!r}", offset=offset)
        if name == _END:
            return
        if not expect_start:
            data = blob[start : start + size]
            yield name, start, _external(data, named_data, start) if external else data
        expect_start = False
        offset = start + (size + 15) // 16 * 16


def _external(key: bytes, named_data: Mapping[str, bytes], offset: int) -> bytes:
    name = key.decode("ascii", "replace")
    if name not in named_data:
        raise ContainerError(
            f"external payload {name[:16]!r}... is not in the program's named data", offset=offset
        )
    return bytes(named_data[name])


def _scratch_size(offset: int, data: bytes) -> int:
    if len(data) != 4:
        raise ContainerError(f"scratch_size has {len(data)} bytes, not 4", offset=offset)
    return int.from_bytes(data, "little")


def _tensors(offset: int, data: bytes) -> tuple[TensorSpec, ...]:
    if len(data) < 4:
        raise ContainerError("tensor list without a count", offset=offset)
    count = int.from_bytes(data[:4], "little", signed=True)
    if count < 0 or len(data) != 4 + count * _TENSOR.size:
        raise ContainerError(f"list of {count} tensors in {len(data)} bytes", offset=offset)
    return tuple(
        _tensor(values, offset + 4 + index * _TENSOR.size)
        for index, values in enumerate(_TENSOR.iter_unpack(data[4:]))
    )


def _tensor(values: tuple[int, ...], offset: int) -> TensorSpec:
    spec = TensorSpec(tuple(values[:_MAX_RANK]), *values[_MAX_RANK:])
    if (
        min(spec.shape) < 0
        or spec.elem_size not in (1, 2, 4, 8)
        or spec.offset < 0
        or not 0 <= spec.region < 8
    ):
        raise ContainerError(f"impossible tensor {spec}", offset=offset)
    if spec.size > _MAX_BYTES:
        raise ContainerError(f"tensor of {spec.size} bytes", offset=offset)
    return spec


def load_raw_npz(path: str | Path) -> VelaBin:
    """Load what Vela's `--output-format raw` writes.

    Raises:
        ContainerError: not such a file, or an entry is missing or malformed.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return _from_arrays(arrays)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ContainerError(f"{path} is not a raw Vela result: {error}") from error


def _from_arrays(arrays: Mapping[str, np.ndarray]) -> VelaBin:
    binary = VelaBin(
        cmd_data=arrays["cmd_data"].tobytes(),
        weight_data=arrays["weight_data"].tobytes(),
        scratch_size=int(arrays["scratch_shape"].reshape(-1)[0]),
        inputs=_array_tensors(arrays, "input"),
        outputs=_array_tensors(arrays, "output"),
    )
    if "scratch_fast_size" in arrays:
        binary = replace(binary, fast_scratch_size=int(arrays["scratch_fast_size"]))
    return binary


def _array_tensors(arrays: Mapping[str, np.ndarray], kind: str) -> tuple[TensorSpec, ...]:
    shapes = arrays[f"{kind}_shape"].reshape(-1, _MAX_RANK).tolist()
    rest = [arrays[f"{kind}_{key}"].reshape(-1).tolist() for key in ("elem_size", "offset", "region")]
    return tuple(
        _tensor((*map(int, shape), *map(int, values)), 0)
        for shape, *values in zip(shapes, *rest, strict=True)
    )

# SPDX-License-Identifier: Apache-2.0
"""The graph inside an XNNPACK delegate, read from its bytes: operators in order, with the tensors they write.

Format: ``backends/xnnpack/serialization`` of the executorch wheel: a header with "XH00" at offset 4, a
flatbuffer (``schema.fbs``), constants.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from report import flatschema
from report.errors import UsageError

BACKEND = "XnnpackBackend"

_UNIONS = ("XNodeUnionCreator", "XValueUnionCreator", "XNNQuantParamsCreator")
_MAGIC = slice(4, 8)

_BYTES = dict.fromkeys(("fp32", "pfp32", "qint32", "qcint32", "int32"), 4)
_BYTES |= dict.fromkeys(("fp16", "bf16"), 2)
_BYTES |= dict.fromkeys(("qint8", "quint8", "qcint8", "qdint8", "qpint8"), 1)
"""Size of an element; 4-bit types have none of their own."""

_INPUTS = ("inputId", *(f"input{number}Id" for number in (1, 2, 3, 4, 5)), "queryId", "keyId", "valueId")
"""Fields that name an operator's inputs, weights left out."""

TRANSPOSES = ("StaticTranspose",)
COPIES = (
    *("Copy", "Convert", "StaticReshape", "StaticSlice", "StaticConstantPad"),
    *(f"Concatenate{number}" for number in (2, 3, 4, 5)),
)
"""Operators that only move data; a reshape may be free, as XNNPACK decides when it runs."""


@dataclass(frozen=True)
class Node:
    """One operator: its kind without the prefix XNN, and the tensor it writes.

    Attributes:
        inputs, output: numbers of tensors. The delegate's own inputs and outputs come first, as its call has
            them.
        perm: of a transpose, else empty.
    """

    kind: str
    dtype: str
    shape: tuple[int, ...]
    inputs: tuple[int, ...] = ()
    output: int = -1
    perm: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int | None:
        """Bytes of the tensor; None for a type without a fixed size."""
        size = _BYTES.get(self.dtype)
        return None if size is None else math.prod(self.shape) * size


@dataclass(frozen=True)
class Movement:
    """How many operators only move data, and the bytes they write."""

    count: int
    nbytes: int


def read(blob: bytes) -> tuple[Node, ...]:
    """The operators of a delegate, in order.

    Raises:
        UsageError: no XNNPACK delegate, or a damaged one.
        EnvironmentError_: executorch is not installed.
    """
    if blob[_MAGIC] != b"XH00":
        raise UsageError("no XNNPACK delegate", why=f"the magic is {blob[_MAGIC]!r}")
    schema = _schema()
    try:
        offset, size = struct.unpack_from("<II", blob, 10)
        graph = schema.XNNGraphT.InitFromPackedBuf(blob[offset : offset + size], 0)
        tensors = dict(_tensor(value, graph.numExterns, schema) for value in graph.xvalues or [])
        return tuple(_node(node, tensors, schema) for node in graph.xnodes or [])
    except Exception as error:  # the generated reader raises whatever damaged offsets lead to
        raise UsageError("damaged XNNPACK delegate", why=f"{type(error).__name__}: {error}") from error


def _schema() -> Any:
    """The schema's classes. flatc defines its unions' readers in one spelling and calls them in another."""
    schema = flatschema.classes(flatschema.XNNPACK)
    defined = {name.lower(): value for name, value in vars(schema).items() if name.endswith("Creator")}
    for name in _UNIONS:
        setattr(schema, name, defined[name.lower()])
    return schema


def kinds(nodes: Sequence[Node]) -> dict[str, int]:
    """How often each kind is there."""
    return dict(sorted(Counter(node.kind for node in nodes).items()))


def movement(nodes: Sequence[Node], wanted: Sequence[str]) -> Movement:
    """The operators of kinds `wanted`; those of a size that is not known count without bytes."""
    found = [node for node in nodes if node.kind in wanted]
    return Movement(len(found), sum(node.nbytes or 0 for node in found))


def _names(enum: Any) -> dict[int, str]:
    return {value: name for name, value in vars(enum).items() if isinstance(value, int)}


@dataclass(frozen=True)
class _Tensor:
    """`number` as in `Node`."""

    number: int
    dtype: str
    shape: tuple[int, ...]


def _tensor(value: Any, externs: int, schema: Any) -> tuple[int, _Tensor]:
    """A tensor under the number that it has in the file."""
    union = value.xvalueUnion
    tensor = getattr(union, "tensorValue", union)
    name = _names(schema.XNNDatatype)[tensor.datatype].removeprefix("xnn_datatype_")
    number = tensor.externalId if tensor.externalId < externs else externs + tensor.idOut
    return tensor.idOut, _Tensor(number, name, tuple(int(d) for d in tensor.dims if d is not None))


def _node(node: Any, tensors: dict[int, _Tensor], schema: Any) -> Node:
    kind = _names(schema.XNodeUnion)[node.xnodeUnionType].removeprefix("XNN")
    fields = vars(node.xnodeUnion)
    output = tensors[fields["outputId"]]
    inputs = tuple(tensors[fields[name]].number for name in _INPUTS if fields.get(name) in tensors)
    perm = () if fields.get("perm") is None else tuple(map(int, fields["perm"]))
    return Node(kind, output.dtype, output.shape, inputs, output.number, perm)

# SPDX-License-Identifier: Apache-2.0
"""A .pte or .bpte file as frozen data: methods, values, instructions, delegates, constants.

Format: ``schema/program.fbs`` of the executorch wheel, with the extended header ("eh00") that tells
where the segments start. Everything is checked while it is read; a damaged file raises `PteError`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from report import flatschema
from report.errors import UsageError

SCALAR_TYPES: Mapping[int, str] = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    11: "bool",
    15: "bfloat16",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
"""ScalarType codes (scalar_type.fbs) that have a meaning here, by torch dtype name."""

_ITEM_SIZE = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in SCALAR_TYPES.values()}
_MAX_BYTES = 1 << 31


class PteError(UsageError):
    """The file is not a readable ExecuTorch program."""


@dataclass(frozen=True)
class TensorMeta:
    """One tensor of a method. `constant` holds its bytes when the file does."""

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: int
    memory_id: int | None
    memory_offset: int | None
    constant: bytes | None
    mutable: bool = False

    @property
    def nbytes(self) -> int:
        """Size of the tensor in bytes."""
        return math.prod(self.shape) * _ITEM_SIZE[self.dtype]


@dataclass(frozen=True)
class ValueList:
    """A list value: `kind` is int, bool, double, tensor or optional_tensor.

    int, tensor and optional_tensor lists hold indices into the method's values (-1: None).
    """

    kind: str
    items: tuple[Any, ...]


Value = None | bool | int | float | str | TensorMeta | ValueList


@dataclass(frozen=True)
class KernelCall:
    """Call of an operator; the last arguments are its outputs (ExecuTorch's out variants)."""

    operator: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class DelegateCall:
    """Call of a delegate: arguments are the value indices of its inputs, then of its outputs."""

    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class MoveCall:
    """Copy of the value at `source` to `target`."""

    source: int
    target: int


@dataclass(frozen=True)
class JumpFalseCall:
    """Jump to `destination` when the boolean value at `condition` is false."""

    condition: int
    destination: int


@dataclass(frozen=True)
class FreeCall:
    """End of life of a dynamically allocated value."""

    value: int


Instruction = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(frozen=True)
class Delegate:
    """One lowered partition: backend id, compile specs and the backend's bytes."""

    backend: str
    compile_specs: Mapping[str, bytes]
    blob: bytes


@dataclass(frozen=True)
class Method:
    """One execution plan. `planned_bytes[i]` is the size of memory id i (0 is unused)."""

    name: str
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    delegates: tuple[Delegate, ...]
    planned_bytes: tuple[int, ...]

    def tensors(self, indices: tuple[int, ...]) -> tuple[TensorMeta, ...]:
        """The tensors among the values at `indices`."""
        return tuple(v for v in (self.values[i] for i in indices) if isinstance(v, TensorMeta))


@dataclass(frozen=True)
class Program:
    """A whole .pte file."""

    methods: tuple[Method, ...]
    named_data: Mapping[str, bytes]

    def method(self, name: str = "forward") -> Method:
        """The method called `name`.

        Raises:
            PteError: the program has no such method.
        """
        for method in self.methods:
            if method.name == name:
                return method
        known = ", ".join(m.name for m in self.methods)
        raise PteError(f"no method {name!r}", why=f"the program has {known or 'no method'}")


def load(path: Path) -> Program:
    """Read the .pte or .bpte file at `path`.

    Raises:
        PteError: the file cannot be read or is damaged; the message names the file and the cause.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PteError(
            "cannot read the program", where=str(path), why=error.strerror or str(error)
        ) from error
    return parse(data, where=str(path))


def program_bytes(data: bytes, where: str = "program") -> bytes:
    """The .pte inside `data`: `data` itself, or the program of a bundled one (.bpte).

    Raises:
        PteError: `data` is neither, saying what it is when that can be told.
    """
    identifier = data[4:8]
    if identifier == b"BP08":
        bundled = _unpack(flatschema.classes(flatschema.BUNDLED_PROGRAM), "BundledProgramT", data, where)
        return bytes(bundled.program)
    if identifier == b"ET12":
        return data
    raise PteError(
        "not an ExecuTorch program",
        where=where,
        why=f"file identifier is {identifier!r}, expected b'ET12' (.pte) or b'BP08' (.bpte)",
        hint="give the .pte that armdeploy compile wrote",
    )


def parse(data: bytes, where: str = "program") -> Program:
    """Read a program from bytes (.pte or .bpte).

    Raises:
        PteError: damaged data; `where` names it in the message.
    """
    data = program_bytes(data, where)
    raw = _unpack(flatschema.classes(flatschema.PROGRAM), "ProgramT", data, where)
    try:
        return _Reader(raw, data).program()
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, struct.error) as error:
        raise PteError("damaged program", where=where, why=f"{type(error).__name__}: {error}") from error


def _unpack(classes: ModuleType, root: str, data: bytes, where: str) -> Any:
    try:
        return getattr(classes, root).InitFromPackedBuf(data, 0)
    except Exception as error:  # the generated code checks nothing: any exception means damage
        raise PteError("damaged program", where=where, why=f"{type(error).__name__}: {error}") from error


class _Reader:
    """Turns the generated classes' objects into the frozen ones, checking every index."""

    def __init__(self, raw: Any, data: bytes) -> None:
        self.raw, self.data = raw, data
        self.segment_base = _segment_base(data)

    def program(self) -> Program:
        plans = self.raw.executionPlan or []
        named = {_text(n.key): self._segment(n.segmentIndex) for n in self.raw.namedData or []}
        return Program(tuple(self._method(plan) for plan in plans), named)

    def _method(self, plan: Any) -> Method:
        values = tuple(self._value(v) for v in _items(plan.values))
        operators = [_operator_name(o) for o in _items(plan.operators)]
        chain = _items(plan.chains)
        raw_instructions = [i for c in chain for i in _items(c.instructions)]
        method = Method(
            name=_text(plan.name),
            values=values,
            inputs=_ints(plan.inputs),
            outputs=_ints(plan.outputs),
            instructions=tuple(self._instruction(i, operators) for i in raw_instructions),
            delegates=tuple(self._delegate(d) for d in _items(plan.delegates)),
            planned_bytes=_ints(plan.nonConstBufferSizes),
        )
        _check_indices(method)
        return method

    def _value(self, evalue: Any) -> Value:
        kinds = flatschema.classes(flatschema.PROGRAM).KernelTypes
        kind, val = evalue.valType, evalue.val
        if kind in (kinds.NONE, kinds.Null):
            return None
        if kind == kinds.Int:
            return int(val.intVal)
        if kind == kinds.Bool:
            return bool(val.boolVal)
        if kind == kinds.Double:
            return float(val.doubleVal)
        if kind == kinds.String:
            return _text(val.stringVal)
        if kind == kinds.Tensor:
            return self._tensor(val)
        names = {kinds.IntList: "int", kinds.BoolList: "bool", kinds.DoubleList: "double"}
        names |= {kinds.TensorList: "tensor", kinds.OptionalTensorList: "optional_tensor"}
        return ValueList(names[kind], tuple(x.item() if hasattr(x, "item") else x for x in _items(val.items)))

    def _tensor(self, t: Any) -> TensorMeta:
        info = t.allocationInfo
        meta = TensorMeta(
            dtype=SCALAR_TYPES[t.scalarType],
            shape=_ints(t.sizes),
            dim_order=_ints(t.dimOrder),
            dynamism=int(t.shapeDynamism),
            memory_id=None if info is None else int(info.memoryId),
            memory_offset=None if info is None else info.memoryOffsetLow | info.memoryOffsetHigh << 32,
            constant=None,
        )
        if min(meta.shape, default=0) < 0 or meta.nbytes > _MAX_BYTES:
            raise ValueError(f"tensor shape {meta.shape} is out of range")
        if t.dataBufferIdx == 0:
            return meta
        constant, mutable = self._tensor_data(t, meta.nbytes), info is not None
        return TensorMeta(**{**vars(meta), "constant": constant, "mutable": mutable})

    def _tensor_data(self, t: Any, size: int) -> bytes:
        extra, index = t.extraTensorInfo, t.dataBufferIdx
        if extra is not None and extra.location == 1:
            raise ValueError(f"constant {_text(extra.fullyQualifiedName)!r} is in an external .ptd file")
        if t.allocationInfo is not None:
            table = self.raw.mutableDataSegments[extra.mutableDataSegmentsIdx if extra else 0]
        elif self.raw.constantBuffer and index < len(self.raw.constantBuffer):
            return bytes(_items(self.raw.constantBuffer[index].storage))[:size]
        else:
            table = self.raw.constantSegment
        offset = int(table.offsets[index])
        data = self._segment(table.segmentIndex)[offset : offset + size]
        if len(data) != size:
            raise ValueError(f"constant {index} needs {size} bytes at {offset}, segment has {len(data)}")
        return data

    def _segment(self, index: int) -> bytes:
        segment = self.raw.segments[index]
        start = self.segment_base + segment.offset
        if start + segment.size > len(self.data):
            raise ValueError(f"segment {index} ends at {start + segment.size}, the file at {len(self.data)}")
        return self.data[start : start + segment.size]

    def _instruction(self, instruction: Any, operators: list[str]) -> Instruction:
        kinds = flatschema.classes(flatschema.PROGRAM).InstructionArguments
        kind, args = instruction.instrArgsType, instruction.instrArgs
        if kind == kinds.KernelCall:
            return KernelCall(operators[args.opIndex], _ints(args.args))
        if kind == kinds.DelegateCall:
            return DelegateCall(args.delegateIndex, _ints(args.args))
        if kind == kinds.MoveCall:
            return MoveCall(args.moveFrom, args.moveTo)
        if kind == kinds.JumpFalseCall:
            return JumpFalseCall(args.condValueIndex, args.destinationInstruction)
        if kind == kinds.FreeCall:
            return FreeCall(args.valueIndex)
        raise ValueError(f"unknown instruction kind {kind}")

    def _delegate(self, delegate: Any) -> Delegate:
        reference = delegate.processed
        if reference.location == 0:
            blob = bytes(_items(self.raw.backendDelegateData[reference.index].data))
        else:
            blob = self._segment(reference.index)
        specs = {_text(s.key): bytes(_items(s.value)) for s in _items(delegate.compileSpecs)}
        return Delegate(_text(delegate.id), specs, blob)


def _segment_base(data: bytes) -> int:
    """Offset of segment 0: the extended header's fourth field, 0 without such a header."""
    if data[8:12] != b"eh00":
        return 0
    if len(data) < 32:
        raise ValueError("the file ends inside its header")
    return int(struct.unpack_from("<Q", data, 24)[0])


def _check_indices(method: Method) -> None:
    """Refuse an index that points at no value, delegate or instruction."""
    count = len(method.values)
    used = [*method.inputs, *method.outputs]
    for instruction in method.instructions:
        if isinstance(instruction, KernelCall | DelegateCall):
            used += instruction.args
        if isinstance(instruction, DelegateCall) and not 0 <= instruction.delegate < len(method.delegates):
            raise IndexError(f"delegate {instruction.delegate} of {len(method.delegates)}")
        if isinstance(instruction, MoveCall):
            used += [instruction.source, instruction.target]
        if isinstance(instruction, JumpFalseCall):
            used.append(instruction.condition)
    for value in method.values:
        if isinstance(value, ValueList) and value.kind in ("int", "tensor", "optional_tensor"):
            used += [i for i in value.items if i != -1]
    bad = [i for i in used if not 0 <= i < count]
    if bad:
        raise IndexError(f"value {bad[0]} of {count}")


def _operator_name(operator: Any) -> str:
    overload = _text(operator.overload)
    return _text(operator.name) + (f".{overload}" if overload else "")


def _items(vector: Any) -> Any:
    return [] if vector is None else vector


def _ints(vector: Any) -> tuple[int, ...]:
    return tuple(int(x) for x in _items(vector))


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""

# SPDX-License-Identifier: Apache-2.0
"""Programs for the tests of the runtime core: exported by ExecuTorch, or made by hand."""

from __future__ import annotations

import copy
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from executorch.devtools import BundledProgram
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer
from executorch.exir import (
    EdgeProgramManager,
    ExecutorchBackendConfig,
    schema,
    to_edge,
    to_edge_transform_and_lower,
)
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir._serialize._program import PTEFile, deserialize_pte_binary, serialize_pte_binary
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch.export import Dim, export

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    """A program and inputs of it; `inputs` are the method's."""

    pte: bytes
    inputs: Tensors
    method: str = "forward"


def _edge(model: torch.nn.Module, inputs: Tensors, **options: Any) -> EdgeProgramManager:
    return to_edge(export(model, inputs, strict=True, **options))


def _pte(edge: EdgeProgramManager, **config: Any) -> bytes:
    return bytes(edge.to_executorch(ExecutorchBackendConfig(**config)).buffer)


def ramp(*shape: int) -> torch.Tensor:
    """0, 1, 2, … in float32."""
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def tensor_of(data: bytes, shape: Sequence[int]) -> torch.Tensor:
    """The float32 tensor of these bytes."""
    return torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(list(shape))


def bytes_of_float(value: float) -> bytes:
    """Four bytes."""
    return struct.pack("<f", value)


class _Add(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b * a


def add() -> Case:
    """Two inputs, two operators, no constant."""
    inputs = (ramp(2, 3), ramp(2, 3) + 10)
    return Case(_pte(_edge(_Add(), inputs)), inputs)


def unplanned() -> Case:
    """Inputs and outputs without planned memory."""
    inputs = (ramp(2, 3), ramp(2, 3) + 10)
    planning = MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    return Case(_pte(_edge(_Add(), inputs), memory_planning_pass=planning), inputs)


class _Constants(torch.nn.Module):
    bias: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(ramp(5))
        self.register_buffer("bias", ramp(3, 1) * 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + self.bias


def constants() -> Case:
    """Constants in a segment."""
    inputs = (ramp(3, 5),)
    return Case(_pte(_edge(_Constants(), inputs)), inputs)


class _Counter(torch.nn.Module):
    state: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", ramp(4) + 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state.add_(x)
        return self.state * 2


def mutable() -> Case:
    """A buffer with a first value that the method changes."""
    inputs = (ramp(4),)
    return Case(_pte(_edge(_Counter(), inputs), passes=[InitializedMutableBufferPass(["state"])]), inputs)


class _Cat(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([a, b, a], dim=0)


def tensor_list() -> Case:
    """A list of tensors."""
    inputs = (ramp(2, 3), -ramp(1, 3))
    return Case(_pte(_edge(_Cat(), inputs)), inputs)


class _View(torch.nn.Module):
    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return (a + a).reshape(6) * 3


def view() -> Case:
    """A view: one tensor's memory under another shape."""
    inputs = (ramp(2, 3),)
    return Case(_pte(_edge(_View(), inputs)), inputs)


def dynamic() -> Case:
    """Bounded dynamic shapes; the inputs are smaller than the bound."""
    batch = Dim("batch", min=1, max=6)
    inputs = (ramp(4, 3), ramp(4, 3) + 10)
    return Case(_pte(_edge(_Add(), inputs, dynamic_shapes=({0: batch}, {0: batch}))), inputs)


class _Cond(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x[0] > 0, lambda t: t + t, lambda t: t * t, [x])


def condition() -> Case:
    """Jumps and moves; this input takes the first branch."""
    inputs = (ramp(3) + 1,)
    return Case(_pte(_edge(_Cond(), inputs)), inputs)


def other_condition() -> Case:
    """The program of `condition`, on its second branch."""
    return replace(condition(), inputs=(-ramp(3),))


class _Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def methods() -> Case:
    """Three methods of different inputs; the second one is run."""
    exported = {
        "first": export(_Twice(), (ramp(2),), strict=True),
        "second": export(_Add(), (ramp(3), ramp(3)), strict=True),
        "third": export(_Constants(), (ramp(3, 5),), strict=True),
    }
    return Case(_pte(to_edge(exported)), (ramp(3), ramp(3) - 5), "second")


class _TwoMemories(MemoryPlanningPass):
    """Puts what an operator makes in memory 2, inputs in memory 1."""

    def run(self, graph_module: torch.fx.GraphModule, graph_signature: Any = None) -> Any:
        for node in graph_module.graph.nodes:
            spec = node.meta.get("spec")
            if spec is not None and hasattr(spec, "mem_id"):
                spec.mem_id = 1 if node.op == "placeholder" else 2
        return super().run(graph_module, graph_signature)


def memories() -> Case:
    """Planned memory over two ids."""
    inputs = (ramp(2, 3), ramp(2, 3) + 10)
    return Case(_pte(_edge(_Add(), inputs), memory_planning_pass=_TwoMemories()), inputs)


BLOB = bytes(range(1, 40))
NAMED = b"bytes by name"


class SumBackend(BackendDetails):
    """The delegate of core_backends.cpp; a blob, a compile spec, named data."""

    @staticmethod
    def preprocess(edge_program: Any, compile_specs: list[CompileSpec]) -> PreprocessResult:
        store = NamedDataStore()
        store.add_named_data("key", NAMED)
        return PreprocessResult(processed_bytes=BLOB, data_store_output=store.get_named_data_store_output())


class _TakeAdd(Partitioner):
    def partition(self, exported_program: Any) -> PartitionResult:
        spec = DelegationSpec(SumBackend.__name__, [CompileSpec("key", b"\x05\x06")])
        for node in exported_program.graph.nodes:
            if node.op == "call_function" and "add" in str(node.target):
                node.meta["delegation_tag"] = "add"
        return PartitionResult(exported_program, {"add": spec})


def delegate(in_segment: bool = True) -> Case:
    """A delegate beside an operator; its blob in a segment of its own, or in the program."""
    inputs = (ramp(2, 3), ramp(2, 3) + 10)
    edge = to_edge_transform_and_lower(export(_Add(), inputs, strict=True), partitioner=[_TakeAdd()])
    return Case(_pte(edge, extract_delegate_segments=in_segment), inputs)


def inline_delegate() -> Case:
    """A delegate whose blob is in the program."""
    return delegate(in_segment=False)


@dataclass
class Builder:
    """A method put together by hand: values, then instructions on them. Serialised by ExecuTorch."""

    values: list[schema.EValue] = field(default_factory=list)
    instructions: list[schema.Instruction] = field(default_factory=list)
    operators: list[schema.Operator] = field(default_factory=list)
    buffers: list[schema.Buffer] = field(default_factory=lambda: [schema.Buffer(storage=b"")])
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    planned: int = 0

    def value(self, value: Any) -> int:
        """Index of a new value."""
        self.values.append(schema.EValue(value))
        return len(self.values) - 1

    def tensor(
        self, sizes: Sequence[int], dtype: schema.ScalarType = schema.ScalarType.FLOAT, **fields: Any
    ) -> int:
        """Index of a new planned tensor (16 bytes' alignment), or of one without memory (allocation=None)."""
        offset = self.planned
        self.planned += 64
        values: dict[str, Any] = {
            "scalar_type": dtype,
            "storage_offset": 0,
            "sizes": list(sizes),
            "dim_order": list(range(len(sizes))),
            "requires_grad": False,
            "layout": 0,
            "data_buffer_idx": 0,
            "allocation_info": schema.AllocationDetails(1, offset, 0),
            "shape_dynamism": schema.TensorShapeDynamism.STATIC,
        }
        return self.value(schema.Tensor(**(values | fields)))

    def constant(
        self, sizes: Sequence[int], data: bytes, dtype: schema.ScalarType = schema.ScalarType.FLOAT
    ) -> int:
        """Index of a new constant tensor."""
        self.buffers.append(schema.Buffer(storage=data))
        return self.tensor(sizes, dtype, data_buffer_idx=len(self.buffers) - 1, allocation_info=None)

    def kernel(self, name: str, overload: str, *args: int) -> None:
        """Call an operator."""
        self.operators.append(schema.Operator(name, overload))
        call = schema.KernelCall(op_index=len(self.operators) - 1, args=list(args))
        self.instructions.append(schema.Instruction(call))

    def step(self, instruction: Any) -> None:
        """Append any other instruction."""
        self.instructions.append(schema.Instruction(instruction))

    def program(self) -> schema.Program:
        """The program, as ExecuTorch's dataclasses."""
        chain = schema.Chain(inputs=[], outputs=[], instructions=self.instructions, stacktrace=None)
        plan = schema.ExecutionPlan(
            name="forward",
            container_meta_type=schema.ContainerMetadata("", ""),
            values=self.values,
            inputs=self.inputs,
            outputs=self.outputs,
            chains=[chain],
            operators=self.operators,
            delegates=[],
            non_const_buffer_sizes=[0, max(self.planned, 16)],
        )
        return schema.Program(0, [plan], self.buffers, [], [], schema.SubsegmentOffsets(0, []))

    def pte(self, inline: bool = False) -> bytes:
        """The bytes; constants in a segment, or inline in the program as older exporters did."""
        return serialise(self.program(), inline=inline)


def serialise(program: schema.Program, inline: bool = False) -> bytes:
    """ExecuTorch's bytes of a program."""
    options = {} if not inline else {"extract_delegate_segments": False}
    return bytes(serialize_pte_binary(PTEFile(program=program, mutable_data=None), **options))


def edited(pte: bytes, edit: Callable[[schema.Program], None]) -> bytes:
    """The program with `edit` applied to its dataclasses, serialised again."""
    file = copy.deepcopy(deserialize_pte_binary(pte))
    edit(file.program)
    return bytes(serialize_pte_binary(file))


PROGRAMS: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        add,
        unplanned,
        constants,
        mutable,
        tensor_list,
        view,
        dynamic,
        condition,
        other_condition,
        methods,
        memories,
        delegate,
        inline_delegate,
    )
}
"""Every program that ExecuTorch exports for these tests, by name."""


def loop() -> Case:
    """A loop by a jump back: doubles x until each element reaches 100; then a move and a jump to the end."""
    made = Builder()
    x, go = made.tensor([2]), made.tensor([2], schema.ScalarType.BOOL)
    limit = made.constant([], bytes_of_float(100.0))
    one, never, copy_of = made.value(schema.Int(1)), made.value(schema.Bool(False)), made.value(schema.Null())
    made.kernel("aten::add", "out", x, x, one, x, x)
    made.kernel("aten::ge", "Tensor_out", x, limit, go, go)
    made.step(schema.JumpFalseCall(go, 0))
    made.step(schema.MoveCall(x, copy_of))
    made.step(schema.JumpFalseCall(never, 5))
    made.inputs, made.outputs = [x], [copy_of, go]
    return Case(made.pte(), (ramp(2) + 1,))


def freed() -> Case:
    """A tensor freed after its last use."""
    made = Builder()
    a, b, alpha = made.tensor([3]), made.tensor([3]), made.value(schema.Int(2))
    spare = made.tensor([3])
    made.kernel("aten::add", "out", a, a, alpha, spare, spare)
    made.kernel("aten::mul", "out", spare, a, b, b)
    made.step(schema.FreeCall(spare))
    made.inputs, made.outputs = [a], [b]
    return Case(made.pte(), (ramp(3),))


def aliased() -> Case:
    """A view that shares another tensor's memory (executorch_prim::et_view) and is an output too."""
    made = Builder()
    a, out = made.tensor([2, 3]), made.tensor([6])
    flat = made.tensor([6], allocation_info=None)
    six = made.value(schema.Int(6))
    shape = made.value(schema.IntList([six]))
    made.kernel("executorch_prim::et_view", "default", a, shape, flat)
    made.kernel("aten::mul", "out", flat, flat, out, out)
    made.inputs, made.outputs = [a], [flat, out]
    return Case(made.pte(), (ramp(2, 3),))


def inline_constants() -> Case:
    """Constants in the program itself, as older exporters wrote them."""
    made = Builder()
    a, out = made.tensor([4]), made.tensor([4])
    weight = made.constant([4], (ramp(4) * 3).numpy().tobytes())
    made.kernel("aten::mul", "out", a, weight, out, out)
    made.inputs, made.outputs = [a], [out]
    return Case(made.pte(inline=True), (ramp(4) + 1,))


def every_kind() -> Case:
    """A value of every kind; lists, a string and None beside one addition and one concatenation."""
    made = Builder()
    a, b = made.tensor([2]), made.tensor([4])
    number = made.value(schema.Int(0))
    made.value(schema.Double(0.5))
    made.value(schema.String("floor"))
    made.value(schema.BoolList([True, False, True]))
    made.value(schema.DoubleList([1.0, 2.5]))
    made.value(schema.IntList([number, number]))
    made.value(schema.OptionalTensorList([a, -1]))
    both = made.value(schema.TensorList([a, a]))
    made.kernel("aten::cat", "out", both, number, b, b)
    made.inputs, made.outputs = [a], [b]
    return Case(made.pte(), (ramp(2) - 7,))


HAND_MADE: dict[str, Callable[[], Case]] = {
    f.__name__: f for f in (loop, freed, aliased, inline_constants, every_kind)
}
"""Programs put together by hand for what ExecuTorch's exporter does not write today."""


def bundled(case: Case, expected: Sequence[Tensors]) -> bytes:
    """A .bpte: the program of `case` with its inputs once for every list of expected outputs."""
    tests = [MethodTestCase(inputs=list(case.inputs), expected_outputs=list(outputs)) for outputs in expected]
    with tempfile.NamedTemporaryFile(suffix=".pte") as file:
        file.write(case.pte)
        file.flush()
        program = BundledProgram(None, [MethodTestSuite(case.method, tests)], pte_file_path=file.name)
        return bytes(serialize_from_bundled_program_to_flatbuffer(program))

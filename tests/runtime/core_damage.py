# SPDX-License-Identifier: Apache-2.0
"""Damaged programs: each is a good one with one thing wrong, and what the runtime core says of it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import core_programs
from core_host import case
from executorch.exir import schema

Edit = Callable[[schema.Program], None]


@dataclass(frozen=True)
class Damage:
    """A damaged program.

    Attributes:
        base: the program of core_programs it was.
        edit: what is done to it.
        code: the error code of the runtime core.
        says: words of its log.
        executorch: ExecuTorch's error code where it is another, and why the core differs; None: what it does
            depends on what lies in memory, a crash as a rule.
    """

    base: str
    edit: Edit
    code: int
    says: str
    executorch: tuple[int | None, str] | None = None

    def pte(self) -> bytes:
        """The damaged file."""
        return core_programs.edited(case(self.base).pte, self.edit)


def _plan(program: schema.Program) -> schema.ExecutionPlan:
    return program.execution_plan[0]


def _tensor(program: schema.Program, planned: bool = True) -> schema.Tensor:
    tensors = (v.val for v in _plan(program).values if isinstance(v.val, schema.Tensor))
    return next(t for t in tensors if (t.allocation_info is not None) == planned)


def _value(program: schema.Program, kind: type) -> schema.KernelTypes:
    return next(v.val for v in _plan(program).values if isinstance(v.val, kind))


def _call(program: schema.Program, kind: type = schema.KernelCall) -> schema.InstructionArguments:
    instructions = _plan(program).chains[0].instructions
    return next(i.instr_args for i in instructions if isinstance(i.instr_args, kind))


def _set(**fields: object) -> Edit:
    """Change the first planned tensor."""

    def edit(program: schema.Program) -> None:
        for name, value in fields.items():
            setattr(_tensor(program), name, value)

    return edit


def _set_memory(**fields: int) -> Edit:
    def edit(program: schema.Program) -> None:
        for name, value in fields.items():
            setattr(_tensor(program).allocation_info, name, value)

    return edit


def _set_call(kind: type, **fields: object) -> Edit:
    def edit(program: schema.Program) -> None:
        for name, value in fields.items():
            setattr(_call(program, kind), name, value)

    return edit


def _set_list(kind: type, items: list[int]) -> Edit:
    def edit(program: schema.Program) -> None:
        _value(program, kind).items = items

    return edit


def _unknown_operator(program: schema.Program) -> None:
    _plan(program).operators[0].name = "aten::nobody"


def _two_unknown_operators(program: schema.Program) -> None:
    for operator in _plan(program).operators:
        operator.name += "_nobody"


def _unknown_backend(program: schema.Program) -> None:
    _plan(program).delegates[0].id = "NobodyBackend"


def _input_out_of_range(program: schema.Program) -> None:
    _plan(program).inputs[0] = len(_plan(program).values)


def _output_negative(program: schema.Program) -> None:
    _plan(program).outputs[0] = -1


def _planned_too_small(program: schema.Program) -> None:
    _plan(program).non_const_buffer_sizes[1] -= 48


def _constant_out_of_range(program: schema.Program) -> None:
    _tensor(program, planned=False).data_buffer_idx = 99


def _constant_larger_than_its_data(program: schema.Program) -> None:
    _tensor(program, planned=False).sizes = [500, 500]
    _tensor(program, planned=False).dim_order = [0, 1]


def _constant_as_output(program: schema.Program) -> None:
    plan = _plan(program)
    constant = next(
        k
        for k, v in enumerate(plan.values)
        if isinstance(v.val, schema.Tensor) and v.val.allocation_info is None
    )
    call = plan.chains[0].instructions[-1].instr_args
    call.args = [*call.args[:-2], constant, constant]


def _jump_on_a_number(program: schema.Program) -> None:
    plan = _plan(program)
    plan.values.append(schema.EValue(schema.Int(1)))
    _call(program, schema.JumpFalseCall).cond_value_index = len(plan.values) - 1


def _endless(program: schema.Program) -> None:
    jumps = [i.instr_args for i in _plan(program).chains[0].instructions]
    [j for j in jumps if isinstance(j, schema.JumpFalseCall)][-1].destination_instruction = 0


def _external(program: schema.Program) -> None:
    extra = schema.ExtraTensorInfo(0, "weight", schema.TensorDataLocation.EXTERNAL)
    _tensor(program, planned=False).extra_tensor_info = extra


def _no_chain(program: schema.Program) -> None:
    _plan(program).chains = []


UNCHECKED = (None, "ExecuTorch follows what it did not check")
NO_CODE = (255, "ExecuTorch refuses it without a code")
NOT_INTERNAL = (0x01, "a damaged file is no internal error")
NOT_CHECKED = (0, "ExecuTorch does not check it")

DAMAGES: dict[str, Damage] = {
    "unknown_operator": Damage(
        "add", _unknown_operator, 0x14, "operator aten::nobody.out is not in this build"
    ),
    "two_unknown_operators": Damage("add", _two_unknown_operators, 0x14, "2 operator(s) missing"),
    "unknown_backend": Damage(
        "delegate", _unknown_backend, 0x20, "backend NobodyBackend is not in this build"
    ),
    "argument_out_of_range": Damage(
        "add", _set_call(schema.KernelCall, args=[0, 1, 99]), 0x23, "value 99 of"
    ),
    "argument_negative": Damage("add", _set_call(schema.KernelCall, args=[0, -1]), 0x23, "value -1 of"),
    "operator_out_of_range": Damage(
        "add", _set_call(schema.KernelCall, op_index=7), 0x23, "operator 7 of 2", UNCHECKED
    ),
    "operator_negative": Damage("add", _set_call(schema.KernelCall, op_index=-1), 0x23, "of 2", UNCHECKED),
    "delegate_out_of_range": Damage(
        "delegate",
        _set_call(schema.DelegateCall, delegate_index=3),
        0x23,
        "delegate 3 of 1",
        (0x20, "no backend"),
    ),
    "jump_out_of_chain": Damage(
        "condition",
        _set_call(schema.JumpFalseCall, destination_instruction=99),
        0x23,
        "jump out of its chain",
        UNCHECKED,
    ),
    "jump_on_a_number": Damage("condition", _jump_on_a_number, 0x23, "a jump needs a bool", UNCHECKED),
    "move_out_of_range": Damage("condition", _set_call(schema.MoveCall, move_to=99), 0x23, "value 99 of"),
    "endless_loop": Damage("condition", _endless, 0x23, "an endless loop?", UNCHECKED),
    "input_out_of_range": Damage("add", _input_out_of_range, 0x23, "value", NO_CODE),
    "output_negative": Damage("add", _output_negative, 0x23, "value -1 of", NO_CODE),
    "memory_0": Damage("add", _set_memory(memory_id=0), 0x12, "tensor: 24 bytes at offset"),
    "memory_out_of_range": Damage("add", _set_memory(memory_id=9), 0x12, "of memory 9, which has 0 bytes"),
    "offset_out_of_memory": Damage(
        "add", _set_memory(memory_offset_low=4000), 0x21, "at offset 4000 of memory 1"
    ),
    "offset_beyond_32_bits": Damage(
        "add", _set_memory(memory_offset_high=1), 0x21, "tensor: 24 bytes at offset"
    ),
    "offset_misaligned": Damage(
        "add", _set_memory(memory_offset_low=2), 0x23, "not aligned to its 4-byte elements", NOT_CHECKED
    ),
    "memory_too_small": Damage("add", _planned_too_small, 0x21, "of memory 1, which has 48 bytes"),
    "size_negative": Damage("add", _set(sizes=[2, -3]), 0x23, "dimension 1 has size -3"),
    "sizes_too_many": Damage(
        "add", _set(sizes=[1] * 17, dim_order=list(range(17))), 0x23, "of different length or longer than 16"
    ),
    "sizes_overflow": Damage(
        "add", _set(sizes=[1 << 30] * 3, dim_order=[0, 1, 2]), 0x23, "more bytes than memory has addresses"
    ),
    "order_too_short": Damage("add", _set(dim_order=[0]), 0x23, "of different length"),
    "order_not_a_permutation": Damage(
        "add", _set(dim_order=[0, 0]), 0x23, "dimension 1 has size 3 and order 0", NOT_INTERNAL
    ),
    "order_out_of_range": Damage(
        "add", _set(dim_order=[0, 7]), 0x23, "dimension 1 has size 3 and order 7", NOT_INTERNAL
    ),
    "storage_offset": Damage("add", _set(storage_offset=4), 0x10, "a storage offset"),
    "unbounded": Damage(
        "add", _set(shape_dynamism=schema.TensorShapeDynamism.DYNAMIC_UNBOUND), 0x10, "unbounded shape"
    ),
    "constant_out_of_range": Damage("constants", _constant_out_of_range, 0x12, "constant 99 lies outside"),
    "constant_short": Damage(
        "constants", _constant_larger_than_its_data, 0x12, "needs 1000000 bytes of data"
    ),
    "constant_as_output": Damage(
        "constants",
        _constant_as_output,
        0x23,
        "its output is a constant",
        (0x12, "its kernel refuses the shape"),
    ),
    "external_data": Damage("constants", _external, 0x02, "in another file (.ptd)"),
    "tensor_list_out_of_range": Damage(
        "tensor_list", _set_list(schema.TensorList, [0, 77]), 0x23, "value 77 of"
    ),
    "tensor_list_of_numbers": Damage(
        "every_kind", _set_list(schema.TensorList, [2]), 0x23, "an item of another kind"
    ),
    "int_list_out_of_range": Damage(
        "every_kind", _set_list(schema.IntList, [2, 1000]), 0x23, "value 1000 of"
    ),
    "int_list_of_tensors": Damage(
        "every_kind", _set_list(schema.IntList, [0]), 0x23, "an item of another kind", NOT_CHECKED
    ),
    "no_chain": Damage("add", _no_chain, 0x23, "no chain of instructions"),
}
"""Programs with one thing wrong in their content."""


def _patched(pte: bytes, at: int, form: str, value: int | bytes) -> bytes:
    data = bytearray(pte)
    struct.pack_into(form, data, at, value)
    return bytes(data)


def damaged_bytes() -> dict[str, tuple[bytes, int]]:
    """Files that are damaged as a whole, with their error code: cut, other magics, wrong sizes."""
    whole = case("constants").pte
    return {
        "empty": (b"", 0x12),
        "zeros": (bytes(400), 0x23),
        "four_bytes": (whole[:4], 0x12),
        "cut_in_header": (whole[:20], 0x12),
        "cut_in_program": (whole[:300], 0x23),
        "cut_in_segment": (whole[:-8], 0x23),
        "other_magic": (_patched(whole, 4, "4s", b"ET11"), 0x23),
        "root_outside": (_patched(whole, 0, "<I", 0x7FFFFFF0), 0x23),
        "header_too_short": (_patched(whole, 12, "<I", 8), 0x23),
        "program_size_0": (_patched(whole, 16, "<Q", 0), 0x23),
        "segments_outside": (_patched(whole, 24, "<Q", 1 << 50), 0x23),
        "segments_too_large": (_patched(whole, 32, "<Q", 1 << 63), 0x23),
    }


def headers_beyond_executorch() -> dict[str, tuple[bytes, str]]:
    """Files whose sizes contradict each other in ways that only the runtime core refuses as damaged."""
    whole = case("constants").pte
    return {
        "program_over_segments": (_patched(whole, 16, "<Q", 1 << 40), "header says 1099511627776 bytes"),
        "segments_inside_program": (_patched(whole, 24, "<Q", 16), "segments 44 at 16; the file has"),
    }

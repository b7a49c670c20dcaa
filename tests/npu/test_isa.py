# SPDX-License-Identifier: Apache-2.0
"""The command table is consistent, and commands survive encoding and decoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu import isa, stream
from npu.config import Family
from npu.errors import StreamError

SPECS = [(family, spec) for family in Family for spec in isa.BY_NAME[family].values()]


@pytest.mark.parametrize("family", Family)
def test_names_and_opcodes_are_unique(family: Family) -> None:
    assert len(isa.BY_NAME[family]) == len(isa.BY_OPCODE[family])


@pytest.mark.parametrize(("family", "spec"), SPECS, ids=lambda item: getattr(item, "name", None))
def test_fields_do_not_overlap_and_fit(family: Family, spec: isa.CommandSpec) -> None:
    seen = 0
    for field in spec.fields:
        assert field.hi >= field.lo
        assert not seen & field.mask, field.name
        seen |= field.mask
    assert seen < 1 << (48 if spec.wide else 16)
    assert spec.opcode < 1 << 10


def field_values(field: isa.Field) -> st.SearchStrategy[int]:
    if field.enum is not None:
        return st.sampled_from(list(field.enum))
    bits = field.hi - field.lo + 1
    if field.signed:
        return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return st.integers(0, (1 << bits) - 1)


@st.composite
def commands(draw: st.DrawFn, family: Family) -> stream.Command:
    spec = draw(st.sampled_from(list(isa.BY_NAME[family].values())))
    fields = {field.name: draw(field_values(field)) for field in spec.fields}
    command = stream.command(family, spec.name, **fields)
    assert command.fields == fields
    return command


@pytest.mark.parametrize("family", Family)
@given(data=st.data())
def test_encode_decode_round_trip(family: Family, data: st.DataObject) -> None:
    written = data.draw(st.lists(commands(family), max_size=20))
    read = stream.decode(stream.encode_all(written), family)
    assert [(c.name, c.fields) for c in read] == [(c.name, c.fields) for c in written]
    assert stream.encode_all(read) == stream.encode_all(written)
    assert [c.offset for c in read] == [sum(c.size for c in read[:n]) for n in range(len(read))]


@pytest.mark.parametrize("family", Family)
@given(words=st.binary(max_size=64))
def test_any_bytes_decode_or_raise(family: Family, words: bytes) -> None:
    try:
        read = stream.decode(words, family)
    except StreamError as error:
        assert error.offset is not None
    else:
        assert stream.encode_all(read) == words


@given(value=st.integers())
def test_field_refuses_what_does_not_fit(value: int) -> None:
    field = isa.Field("value", 11, 4)
    if 0 <= value < 256:
        assert field.extract(field.insert(value)) == value
    else:
        with pytest.raises(ValueError, match="does not fit"):
            field.insert(value)


def test_operation_bit_follows_the_opcode() -> None:
    for family in Family:
        for spec in isa.BY_NAME[family].values():
            assert spec.is_operation == spec.name.startswith("OP_") or spec.name == "OP_SCALAR", spec.name


def test_same_opcode_other_meaning_per_family() -> None:
    assert isa.BY_OPCODE[Family.U55][False, 0x12D].name == "AB_START"
    assert isa.BY_OPCODE[Family.U85][False, 0x12D].name == "RESIZE_Y_OFFSET"
    assert isa.BY_OPCODE[Family.U65][True, 0x92].name == "SCALE1_BASE"
    assert isa.BY_OPCODE[Family.U85][True, 0x92].name == "WEIGHT2_BASE"

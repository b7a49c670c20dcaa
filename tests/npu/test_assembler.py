# SPDX-License-Identifier: Apache-2.0
"""Disassembly and assembly are each other's inverse, on real streams and on random operands."""

from __future__ import annotations

import golden
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npu import isa, stream
from npu.assembler import assemble
from npu.config import Family, npu_config
from npu.container import parse_velabin
from npu.errors import StreamError


@pytest.mark.parametrize("name", golden.NAMES)
def test_a_listing_assembles_to_the_words_it_was_made_of(name: str) -> None:
    example = golden.load(name)
    parsed = stream.parse(parse_velabin(example.container).cmd_data)
    listing = [line[24:] for line in stream.disassemble(parsed)]  # without offset and raw words
    assembled = assemble(listing, npu_config(example.npu).family, parsed.base_offset)
    assert tuple(assembled) == parsed.commands


@given(st.data())
def test_any_operand_survives(data: st.DataObject) -> None:
    family = data.draw(st.sampled_from(list(Family)))
    spec = data.draw(st.sampled_from(list(isa.BY_NAME[family].values())))
    operand = data.draw(st.integers(0, (1 << (48 if spec.wide else 16)) - 1))
    command = stream.from_operand(spec, operand)
    (line,) = stream.disassemble([command])
    assert list(assemble([line], family)) == [command]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("OP_NOTHING", "line 1: no U85 command"),
        ("OP_STOP mask=0x10000", "does not fit"),
        ("OP_STOP colour=1", "colour"),
        ("IFM_PRECISION layout=SIDEWAYS", "SIDEWAYS"),
    ],
)
def test_bad_text_is_refused_with_its_line(line: str, told: str) -> None:
    with pytest.raises(StreamError, match=told):
        list(assemble([line], Family.U85))

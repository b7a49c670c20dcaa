# SPDX-License-Identifier: Apache-2.0
"""The table of configurations against the words that Vela writes into its streams."""

from __future__ import annotations

import struct

import pytest
from one_layer import OneLayer, compile_layer

from npu.config import CONFIGS, from_config_word, npu_config
from npu.errors import UnknownConfig


@pytest.mark.parametrize("name", CONFIGS)
def test_words_are_those_of_vela(name: str) -> None:
    commands, _ = compile_layer(OneLayer(kernel=(1, 1), size=(2, 2)), name)
    config_word, id_word = struct.unpack_from("<2I", commands, 8)
    assert (CONFIGS[name].config_word, CONFIGS[name].id_word) == (config_word, id_word)
    assert from_config_word(config_word) is CONFIGS[name]


def test_a_family_name_is_its_default_size() -> None:
    assert npu_config("ethos-u55").name == "ethos-u55-128"
    assert npu_config("ethos-u65").name == "ethos-u65-256"
    assert npu_config("ethos-u85").name == "ethos-u85-256"


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownConfig, match=r"'ethos-u55-100'.*ethos-u55-128.*ethos-u85-2048"):
        npu_config("ethos-u55-100")


@pytest.mark.parametrize("word", [0, 0x00001809, 0x1000300A, 0x2000011C, 0x30000008, 0x20000128])
def test_an_unknown_word_is_an_error(word: int) -> None:
    with pytest.raises(UnknownConfig, match=f"{word:#010x}"):
        from_config_word(word)

# SPDX-License-Identifier: Apache-2.0
"""Caches of decoded weights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from ethosu import mlw_codec

from npu.config import npu_config
from npu.weights import Traversal, WeightFormat, WeightLayout, cache, clear_memory, decode, decode_weights

_LAYOUT = WeightLayout(
    config=npu_config("ethos-u55-128"),
    traversal=Traversal.DEPTH_FIRST,
    weight_format=WeightFormat.STANDARD,
    sparse=False,
    ifm_bits=8,
    ofm_depth=64,
    ifm_depth=64,
    kernel_h=1,
    kernel_w=1,
    stride_y=1,
    stride_x=1,
    dilation_y=1,
    dilation_x=1,
    ofm_block_depth=64,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The disk cache is in a folder of its own, and memory is empty."""
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
    clear_memory()
    return tmp_path


@pytest.fixture
def stream() -> bytes:
    values = np.random.default_rng(3).integers(-128, 128, _LAYOUT.size)
    return bytes(mlw_codec.encode(values.tolist()))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _forbid_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("decoded again")

    monkeypatch.setattr(decode, "_decode", fail)


def test_memory_serves_the_same_tensor(folder: Path, stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = decode_weights(_LAYOUT, [stream])
    _forbid_decoding(monkeypatch)
    assert decode_weights(_LAYOUT, [stream]) is weights


def test_disk_serves_the_next_process(folder: Path, stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = decode_weights(_LAYOUT, [stream])
    clear_memory()
    _forbid_decoding(monkeypatch)
    again = decode_weights(_LAYOUT, [stream])
    np.testing.assert_array_equal(again, weights)
    assert not again.flags.writeable


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:-1] + b"\0"])
def test_a_damaged_file_is_ignored_and_written_again(folder: Path, stream: bytes, damage) -> None:
    weights = decode_weights(_LAYOUT, [stream])
    (path,) = _files(folder)
    content = path.read_bytes()
    path.write_bytes(damage(content))
    clear_memory()
    np.testing.assert_array_equal(decode_weights(_LAYOUT, [stream]), weights)
    assert path.read_bytes() == content


def test_off_leaves_no_file(folder: Path, stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.ENVIRONMENT, "off")
    monkeypatch.chdir(folder)
    decode_weights(_LAYOUT, [stream])
    assert not _files(folder)


def test_a_place_that_cannot_be_written_is_no_error(
    folder: Path, stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocker = folder / "file"
    blocker.touch()
    monkeypatch.setenv(cache.ENVIRONMENT, str(blocker))
    assert decode_weights(_LAYOUT, [stream]).shape == _LAYOUT.shape


def test_the_folder_keeps_to_its_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = np.zeros(1000, np.int16)
    monkeypatch.setattr(cache, "DISK_LIMIT", 10_000)
    for number in range(12):
        cache.store(f"{number:02}", tensor)
        (path,) = folder.rglob(f"{number:02}")
        os.utime(path, (number, number))
    names = {path.name for path in _files(folder)}
    assert sum(path.stat().st_size for path in _files(folder)) <= 10_000
    assert "11" in names
    assert "00" not in names


def test_memory_drops_what_was_not_used_for_longest() -> None:
    memory: cache.MemoryCache[str] = cache.MemoryCache(10)
    memory.put("a", "A", 4)
    memory.put("b", "B", 4)
    assert memory.get("a") == "A"
    memory.put("c", "C", 4)
    assert memory.get("b") is None
    assert (memory.get("a"), memory.get("c")) == ("A", "C")


def test_memory_refuses_what_is_larger_than_itself() -> None:
    memory: cache.MemoryCache[str] = cache.MemoryCache(10)
    memory.put("a", "A", 4)
    memory.put("b", "B", 11)
    assert memory.get("a") == "A"
    assert memory.get("b") is None

# SPDX-License-Identifier: Apache-2.0
"""Compiling with torch's repeated work spared gives what compiling without sparing gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch._ops
from torch._export import utils
from torch.fx.traceback import NodeSource

from aot.pipeline import Compiler
from aot.quicken import quickened


def _compiled(compile_: Callable[..., Any], folder: Path) -> tuple[bytes, Any]:
    assert compile_("-m", "two_conv", "-t", "ethos-u85-256", "-o", folder / "m.pte").code == 0
    report = json.loads((folder / "m.report.json").read_text())
    return (folder / "m.pte").read_bytes(), [report[part] for part in ("cpu_ops", "boundary_ops", "memory")]


def test_programs_are_the_same_without_it(
    tmp_path: Path, compile_: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = _compiled(compile_, tmp_path / "quick")
    monkeypatch.setattr(Compiler, "compile", Compiler.compile.__wrapped__)  # type: ignore[attr-defined]
    assert _compiled(compile_, tmp_path / "slow") == quick


def test_torch_is_as_it_was_afterwards() -> None:
    def names() -> list[Any]:
        return [torch._ops.Callable, utils._collect_all_valid_cia_ops, hasattr(NodeSource, "__deepcopy__")]

    before = names()
    with pytest.raises(KeyError), quickened():
        assert names() != before
        assert utils._collect_all_valid_cia_ops() == before[1]()
        raise KeyError
    assert names() == before

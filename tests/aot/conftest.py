# SPDX-License-Identifier: Apache-2.0
"""Helpers of the compiler's tests: the program called in this process, and small model files."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aot import compile as aot_compile


@dataclass(frozen=True)
class Finished:
    """One call of the program: exit code, what it printed, and its reports when it was asked for JSON."""

    code: int
    out: str
    err: str

    @property
    def reports(self) -> list[dict[str, Any]]:
        return json.loads(self.out)["reports"]

    @property
    def error(self) -> str:
        """The one line that names the error."""
        lines = [line for line in self.err.splitlines() if ": error: " in line]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


@pytest.fixture
def compile_(capfd: pytest.CaptureFixture[str]) -> Callable[..., Finished]:
    """Run ``compile`` with these arguments."""

    def call(*arguments: str | Path) -> Finished:
        capfd.readouterr()
        code = aot_compile.main([str(argument) for argument in arguments])
        return Finished(code, *capfd.readouterr())

    return call


@pytest.fixture
def model_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a model file; its text may use torch, nn and the class body of `Model`."""

    def write(forward: str, inputs: str, layers: str = "pass", name: str = "model.py") -> Path:
        path = tmp_path / name
        path.write_text(
            textwrap.dedent(
                f"""\
                import torch
                from torch import nn

                class Model(nn.Module):
                    def __init__(self):
                        super().__init__()
                        {layers}

                    def forward(self, x):
                        return {forward}

                torch.manual_seed(0)
                ModelUnderTest = Model()
                ModelInputs = ({inputs},)
                """
            )
        )
        return path

    return write

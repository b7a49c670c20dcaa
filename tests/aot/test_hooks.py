# SPDX-License-Identifier: Apache-2.0
"""Where an operator comes from: the model's own line, not the framework's and not generated code's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import torch

from aot.hooks import source_line

_CALL = '  File "{}", line {}, in forward\n    x = f(x)\n'


def test_the_innermost_line_of_the_model() -> None:
    calls = (
        ("/home/me/model.py", 7),
        ("/home/me/layers.py", 9),
        (f"{Path(torch.__file__).parent}/nn/functional.py", 50),
        ("<eval_with_key>.151", 15),
    )
    trace = "".join(_CALL.format(*call) for call in calls)
    assert source_line(SimpleNamespace(meta={"stack_trace": trace})) == "layers.py:9"
    assert source_line(SimpleNamespace(meta={"stack_trace": _CALL.format(*calls[3])})) == ""
    assert source_line(SimpleNamespace(meta={})) == ""

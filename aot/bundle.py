# SPDX-License-Identifier: Apache-2.0
"""Files beside a .pte: the bundled program with inputs and reference outputs (.bpte), and the ETRecord."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from torch.utils._pytree import tree_leaves

from aot.lowering import Lowered
from aot.models import Model


def write_bundle(path: Path, lowered: Lowered, model: Model, reference: Any) -> None:
    """Write the program with the example inputs and `reference`, the outputs expected for them."""
    from executorch.devtools import BundledProgram
    from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
    from executorch.devtools.bundled_program.serialize import serialize_from_bundled_program_to_flatbuffer

    inputs = [*model.inputs, *model.kwargs.values()]
    case = MethodTestCase(inputs=inputs, expected_outputs=tree_leaves(reference))
    bundled = BundledProgram(lowered.program, [MethodTestSuite(method_name="forward", test_cases=[case])])
    path.write_bytes(serialize_from_bundled_program_to_flatbuffer(bundled))


def write_etrecord(path: Path, lowered: Lowered) -> None:
    """Write the ETRecord that ExecuTorch's Inspector maps profiles with."""
    from executorch.devtools import generate_etrecord

    generate_etrecord(str(path), copy.deepcopy(lowered.edge), lowered.program)

# SPDX-License-Identifier: Apache-2.0
"""What ExecuTorch knows while it lowers, kept: rejected operators, TOSA graphs, and their operators' origins.

ExecuTorch 1.5.1 hands none of it out. The partitioner logs its reasons as text; the backend calls Vela at
once, so that a second target with the same TOSA graphs would have to repeat the whole lowering; where in the
model an operator came from is told in a debug mode only, to a file. For the time of one lowering, three
names of its modules are therefore replaced by ones that listen.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any
from unittest import mock

from aot.fallback import module_path

_CALL = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True)
class Origin:
    """Where a TOSA operator comes from in the model.

    Attributes:
        index: number of the operator in the graph, constants counted.
        tosa: name of its first output tensor; `operator` is its kind (CONV2D …).
        module_path: the module's path in the model, "" where the operator was added while lowering.
        line: source file and line that called it, "" if not known.
        node: the node of the exported model it comes from, "" if not known.
    """

    index: int
    tosa: str
    operator: str
    module_path: str
    line: str
    node: str


@dataclass(frozen=True)
class TosaGraph:
    """One partition as a TOSA flatbuffer, with the origin of each operator in the order of serialisation."""

    data: bytes
    origins: tuple[Origin, ...]


@dataclass
class LoweringRecord:
    """What was heard.

    Attributes:
        rejected: the partitioner's reason by node name.
        tosa: the partitions. A delegate's bytes are its index here, in decimal, until Vela has run.
    """

    rejected: dict[str, str] = field(default_factory=dict)
    tosa: list[TosaGraph] = field(default_factory=list)


class _Listener:
    """ExecuTorch's DebugHook: notes each operator's node by its output tensor, then asks the real hook."""

    def __init__(self, hook: Any, heard: dict[str, Any]) -> None:
        self._hook, self._heard = hook, heard
        self.mode = hook.mode if hook is not None else None

    def add(self, node: Any, tosa_op: Any, tosa_op_id: Any) -> Any:
        self._heard[str(tosa_op)] = node
        return self._hook.add(node, tosa_op, tosa_op_id) if self._hook is not None else None


def _origins(tosa: bytes, nodes: Mapping[str, Any]) -> tuple[Origin, ...]:
    """Of the operators of the graph's first block whose node was heard."""
    from tosa.Op import Op
    from tosa.TosaGraph import TosaGraph as Flatbuffer

    kinds = {value: name for name, value in vars(Op).items() if isinstance(value, int)}
    block = Flatbuffer.GetRootAs(tosa).Regions(0).Blocks(0)
    operators = map(block.Operators, range(block.OperatorsLength()))
    named = ((i, o.Outputs(0).decode(), kinds[o.Op()]) for i, o in enumerate(operators) if o.OutputsLength())
    return tuple(
        Origin(index, tensor, kind, module_path(node), source_line(node), root_name(node))
        for index, tensor, kind in named
        if (node := nodes.get(tensor)) is not None
    )


def source_line(node: Any) -> str:
    """``file.py:12`` of the innermost call in the model's own code, "" if there is none."""
    calls = _CALL.findall(node.meta.get("stack_trace") or "")
    foreign = (*_framework_folders(), "<")  # "<": code that torch generated
    own = [(file, line) for file, line in calls if not file.startswith(foreign)]
    return f"{PurePath(own[-1][0]).name}:{own[-1][1]}" if own else ""


def root_name(node: Any) -> str:
    """Name of the node of the exported model that `node` became of by re-exporting and passes, else ""."""
    sources = node.meta.get("from_node")
    if not sources:
        return ""
    while sources[-1].from_node:
        sources = sources[-1].from_node
    return str(sources[-1].name)


@functools.cache
def _framework_folders() -> tuple[str, ...]:
    """Where torch and executorch live: calls in there are how a model was lowered, not what it says."""
    import executorch
    import torch

    return (*torch.__path__, *executorch.__path__)


@contextlib.contextmanager
def recording() -> Iterator[LoweringRecord]:
    """Record what is lowered inside the block, in place of running Vela."""
    from executorch.backends.arm.arm_vela import VelaCompileResult
    from executorch.backends.arm.ethosu import backend
    from executorch.backends.arm.operators import node_visitor
    from executorch.backends.arm.tosa import partitioner
    from executorch.exir.backend.utils import WhyNoPartitionReporter

    record = LoweringRecord()
    heard: dict[str, Any] = {}
    make_visitors = node_visitor.get_node_visitors

    def listening_visitors(profile: Any, hook: Any = None) -> Any:
        return make_visitors(profile, _Listener(hook, heard))

    class Reporter(WhyNoPartitionReporter):
        """Also keeps the first reason given for each node, by node name; the last partitioning counts."""

        def __init__(self) -> None:
            super().__init__()
            record.rejected.clear()

        def report_reject(self, node: Any, reason: str) -> None:
            super().report_reject(node, reason)
            record.rejected.setdefault(node.name, " ".join(reason.split()))

    def keep_tosa(tosa: bytes, *_args: Any, **_options: Any) -> VelaCompileResult:
        record.tosa.append(TosaGraph(tosa, _origins(tosa, heard)))
        heard.clear()
        return VelaCompileResult(str(len(record.tosa) - 1).encode())

    with (
        mock.patch.object(partitioner, "WhyNoPartitionReporter", Reporter),
        mock.patch.object(backend, "vela_compile", keep_tosa),
        mock.patch.object(node_visitor, "get_node_visitors", listening_visitors),
    ):
        yield record

# SPDX-License-Identifier: Apache-2.0
"""Where a program leaves XNNPACK and comes back to it, and the transposes that this costs.

XNNPACK convolves channels last, the program's tensors are channels first. So a partition turns a 4-D tensor
when it comes in and when it goes out, and every operator that splits a partition costs transposes on both
sides. They are found in the partitions' own graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from report import pte, xnnpack
from report.xnnpack import Movement, Node

_TURNS = ((0, 2, 3, 1), (0, 3, 1, 2))
"""What turns channels first to last and back; any other transpose is the model's own."""

_FIXED = frozenset(
    "Conv2d DepthwiseConv2d ConvTranspose2d MaxPooling2d AvgPooling2d GlobalAvgPooling2d ArgMaxPooling2d "
    "StaticResizeBilinear2D PReLU StaticReshape FullyConnected BatchMatrixMultiply".split()
)
"""Operators that need one layout; the others take a tensor as it is, so the transpose lies behind them."""

Turn = tuple[int, int]
"""A transpose: the number of its delegate call's instruction, and its place in the delegate's graph."""


@dataclass(frozen=True)
class Outside:
    """An operator that is no partition's; `shape` and `dtype` are of the first tensor that it writes."""

    instruction: int
    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Split:
    """Operators that hang together with partitions before and behind them.

    Attributes:
        before, behind: the partitions next to them.
        transposes: of the tensors that they read and write, in these partitions.
        passing: of tensors that go from a partition before them directly to one behind them.
    """

    operators: tuple[Outside, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    transposes: Movement
    passing: Movement


@dataclass(frozen=True)
class Layout:
    """A program's splits and its data movement. Every transpose is in one of the four parts of `transposes`.

    Attributes:
        at_splits: beside operators that split, and of tensors that pass them by.
        at_interface: of the program's inputs and outputs.
        of_model: that the model asks for.
        inside: between operators of one partition that need different layouts.
    """

    partitions: int
    outside: int
    splits: tuple[Split, ...]
    transposes: Movement
    at_splits: Movement
    at_interface: Movement
    of_model: Movement
    inside: Movement
    copies: Movement

    def totals(self) -> dict[str, Any]:
        """Everything but the splits themselves, JSON-ready; sizes in bytes."""
        parts = ("transposes", "at_splits", "at_interface", "of_model", "inside", "copies")
        moved = {name: movement_json(getattr(self, name)) for name in parts}
        return {
            "partitions": self.partitions,
            "outside": self.outside,
            "splits": len(self.splits),
            **moved,
        }


def movement_json(movement: Movement) -> dict[str, int]:
    """How many, and how many bytes they write."""
    return {"count": movement.count, "bytes": movement.nbytes}


def analyse(method: pte.Method) -> Layout:
    """The layout of `method`.

    Raises:
        UsageError: a delegate that is not XNNPACK's, or a damaged one.
    """
    return _Program(method, [xnnpack.read(delegate.blob) for delegate in method.delegates]).layout()


@dataclass(frozen=True)
class _Edge:
    """A tensor on its way from the instruction that writes it to one that reads it.

    `written` and `read` are its value there: two values of one place in memory when a view lies between.
    `source` is None for the program's inputs, `target` for its outputs.
    """

    source: int | None
    written: int
    target: int | None
    read: int


class _Flow:
    """Which instruction reads what another has written."""

    def __init__(self, method: pte.Method, graphs: Sequence[Sequence[Node]]) -> None:
        self._method = method
        self._last: dict[Any, tuple[int | None, int]] = {}
        self.edges: list[_Edge] = []
        self._note_writes(None, method.inputs)
        for number, instruction in enumerate(method.instructions):
            written = set(_written(method, instruction, graphs))
            read = [value for value in _arguments(instruction) if value not in written]
            self._note_reads(number, self._tensors(read))
            self._note_writes(number, self._tensors(written))
        self._note_reads(None, method.outputs)

    def before(self) -> list[frozenset[int]]:
        """For each instruction, those that it depends on."""
        found: list[frozenset[int]] = []
        for number in range(len(self._method.instructions)):
            sources = {e.source for e in self.edges if e.target == number and e.source is not None}
            found.append(frozenset(sources.union(*(found[source] for source in sources))))
        return found

    def _note_reads(self, target: int | None, values: Iterable[int]) -> None:
        for value in dict.fromkeys(values):
            if (last := self._last.get(self._place(value))) is not None:
                self.edges.append(_Edge(*last, target, value))

    def _note_writes(self, source: int | None, values: Iterable[int]) -> None:
        self._last.update((self._place(value), (source, value)) for value in values)

    def _place(self, value: int) -> Any:
        """The tensor's place in planned memory; a value that has none is its own place."""
        tensor = self._method.values[value]
        if isinstance(tensor, pte.TensorMeta) and tensor.memory_offset is not None:
            return tensor.memory_id, tensor.memory_offset
        return value

    def _tensors(self, values: Iterable[int]) -> Iterator[int]:
        """The tensors among `values`, those in lists included."""
        for number in values:
            value = self._method.values[number]
            if isinstance(value, pte.TensorMeta):
                yield number
            elif isinstance(value, pte.ValueList) and "tensor" in value.kind:
                yield from (item for item in value.items if item != -1)


def _arguments(instruction: pte.Instruction) -> tuple[int, ...]:
    return instruction.args if isinstance(instruction, pte.KernelCall | pte.DelegateCall) else ()


def _written(
    method: pte.Method, instruction: pte.Instruction, graphs: Sequence[Sequence[Node]]
) -> Iterator[int]:
    """What an instruction writes: a kernel's last argument is what it returns."""
    if isinstance(instruction, pte.DelegateCall):
        outputs = {node.output for node in graphs[instruction.delegate]}
        yield from (value for place, value in enumerate(instruction.args) if place in outputs)
    elif isinstance(instruction, pte.KernelCall) and instruction.args:
        returned = instruction.args[-1]
        value = method.values[returned]
        yield returned
        yield from value.items if isinstance(value, pte.ValueList) and "tensor" in value.kind else ()


class _Program:
    """A method with the graphs of its delegates."""

    def __init__(self, method: pte.Method, graphs: Sequence[Sequence[Node]]) -> None:
        self._method, self._graphs = method, graphs
        flow = _Flow(method, graphs)
        self._edges, self._before = flow.edges, flow.before()
        self._partitions = {n for n, i in enumerate(method.instructions) if isinstance(i, pte.DelegateCall)}
        self._kernels = [n for n, i in enumerate(method.instructions) if _is_operator(i)]

    def layout(self) -> Layout:
        every = self._nodes_of(xnnpack.TRANSPOSES)
        turns = {turn for turn in every if self._node(turn).perm in _TURNS}
        groups = list(self._groups())
        direct = {edge: self._turns(edge) for edge in self._edges if self._joins_partitions(edge)}
        at_splits = set().union(*map(self._beside, groups), *direct.values())
        ends = [self._turns(edge) for edge in self._edges if edge.source is None or edge.target is None]
        at_interface = set().union(*ends) - at_splits
        return Layout(
            partitions=len(self._partitions),
            outside=len(self._kernels),
            splits=tuple(self._split(group, direct) for group in groups),
            transposes=self._movement(every),
            at_splits=self._movement(at_splits),
            at_interface=self._movement(at_interface),
            of_model=self._movement(every - turns),
            inside=self._movement(turns - at_splits - at_interface),
            copies=self._movement(self._nodes_of(xnnpack.COPIES)),
        )

    def _groups(self) -> Iterator[list[int]]:
        """Operators between partitions; those that read from one another are one group."""
        lead_back: set[int] = set().union(*(self._before[n] for n in self._partitions))
        group_of: dict[int, list[int]] = {}
        for number in self._kernels:
            if number not in lead_back or not self._before[number] & self._partitions:
                continue
            sources = {edge.source for edge in self._edges if edge.target == number}
            joined = {id(group_of[s]): group_of[s] for s in sources if s in group_of}
            group = sorted([number, *(member for other in joined.values() for member in other)])
            group_of.update(dict.fromkeys(group, group))
        yield from {id(group): group for group in group_of.values()}.values()

    def _split(self, group: Sequence[int], direct: Mapping[_Edge, set[Turn]]) -> Split:
        behind = {n for n in self._partitions if self._before[n] & set(group)}
        before = set().union(*(self._before[n] for n in group))
        passing = [turns for edge, turns in direct.items() if edge.source in before and edge.target in behind]
        beside = self._beside(group)
        edges = self._edges
        return Split(
            tuple(map(self._outside, group)),
            before=self._delegates(edge.source for edge in edges if edge.target in group),
            behind=self._delegates(edge.target for edge in edges if edge.source in group),
            transposes=self._movement(beside),
            passing=self._movement(set().union(*passing) - beside),
        )

    def _outside(self, number: int) -> Outside:
        call = self._method.instructions[number]
        assert isinstance(call, pte.KernelCall)
        values = (self._method.values[value] for value in _written(self._method, call, self._graphs))
        for tensor in values:
            if isinstance(tensor, pte.TensorMeta):
                return Outside(number, call.operator, tensor.shape, tensor.dtype)
        return Outside(number, call.operator, (), "")

    def _beside(self, group: Sequence[int]) -> set[Turn]:
        """The transposes of the tensors that the group reads from partitions and writes for them."""
        edges = (edge for edge in self._edges if edge.source in group or edge.target in group)
        return set().union(*map(self._turns, edges))

    def _joins_partitions(self, edge: _Edge) -> bool:
        return edge.source in self._partitions and edge.target in self._partitions

    def _turns(self, edge: _Edge) -> set[Turn]:
        """The transposes that a tensor meets last where it is written, and first where it is read."""
        last = self._walk(edge.source, edge.written, _backward)
        return last | self._walk(edge.target, edge.read, _forward)

    def _walk(
        self, number: int | None, value: int, walk: Callable[[Sequence[Node], int], set[int]]
    ) -> set[Turn]:
        if number is None or number not in self._partitions:
            return set()
        call = self._call(number)
        places = [place for place, argument in enumerate(call.args) if argument == value]
        nodes = self._graphs[call.delegate]
        return {(number, index) for place in places for index in walk(nodes, place)}

    def _delegates(self, numbers: Iterable[int | None]) -> tuple[int, ...]:
        found = {self._call(n).delegate for n in numbers if n is not None and n in self._partitions}
        return tuple(sorted(found))

    def _call(self, number: int) -> pte.DelegateCall:
        call = self._method.instructions[number]
        assert isinstance(call, pte.DelegateCall)
        return call

    def _nodes_of(self, kinds: Collection[str]) -> set[Turn]:
        graphs = ((n, self._graphs[self._call(n).delegate]) for n in self._partitions)
        return {(n, index) for n, graph in graphs for index, node in enumerate(graph) if node.kind in kinds}

    def _node(self, turn: Turn) -> Node:
        return self._graphs[self._call(turn[0]).delegate][turn[1]]

    def _movement(self, moves: Collection[Turn]) -> Movement:
        return Movement(len(moves), sum(self._node(move).nbytes or 0 for move in moves))


def _is_operator(instruction: pte.Instruction) -> bool:
    """Whether it works on tensors; ``executorch_prim`` works on sizes and indices."""
    prim = "executorch_prim::"
    return isinstance(instruction, pte.KernelCall) and not instruction.operator.startswith(prim)


def _forward(nodes: Sequence[Node], tensor: int) -> set[int]:
    """The transposes that `tensor` meets first on its way through the graph."""
    return _first_turns(nodes, range(len(nodes)), tensor, lambda node: (set(node.inputs), {node.output}))


def _backward(nodes: Sequence[Node], tensor: int) -> set[int]:
    """The transposes that `tensor` has met last."""
    order = reversed(range(len(nodes)))
    return _first_turns(nodes, order, tensor, lambda node: ({node.output}, set(node.inputs)))


def _first_turns(
    nodes: Sequence[Node],
    order: Iterable[int],
    tensor: int,
    ends: Callable[[Node], tuple[set[int], set[int]]],
) -> set[int]:
    """The nodes that turn what comes from `tensor`; `ends` are what a node is reached by and leads to."""
    found, todo = set(), {tensor}
    for index in order:
        near, far = ends(nodes[index])
        if not todo & near:
            continue
        if nodes[index].perm in _TURNS:
            found.add(index)
        elif _passes(nodes[index]):
            todo |= far
    return found


def _passes(node: Node) -> bool:
    """Whether a tensor's layout goes through `node` as it is."""
    return node.kind not in _FIXED and not node.perm and len(node.shape) == 4

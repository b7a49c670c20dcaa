# SPDX-License-Identifier: Apache-2.0
"""From what a process left to a profile: ETDump's events with instructions, or on hardware with time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

from fvp.aarch64.instructions import CLASSES
from fvp.aarch64.runner import Ended
from fvp.aarch64.symbols import Symbols
from fvp.aarch64.trace import Trace, by_symbol
from report import etdump
from report.cortex_a import CpuTarget
from report.cpu_profile import CpuProfile, OperatorCost
from report.errors import RunFailed
from report.etdump import Call, Execution, Span

_NANOSECONDS_PER_CALL = 1000
_KLEIDIAI = ("kai_kernel_", "kai_run_")
_MULTIPLIES = ("kai_kernel_matmul_", "kai_kernel_imatmul_")
_SME = frozenset({"sme", "sme2"})
_SHOWN_KERNELS = 4


def is_sme_kernel(function: str) -> bool:
    """Whether a function is a KleidiAI kernel for SME or SME2: a word of its name says so."""
    return function.startswith(_KLEIDIAI) and not _SME.isdisjoint(function.split("_"))


def _only_prepares(item: tuple[str, int]) -> bool:
    """Whether a function packs operands or calls others, and does not multiply itself."""
    return not item[0].startswith(_MULTIPLIES)


def timed(ended: Ended, target: CpuTarget, operators: Sequence[str]) -> CpuProfile:
    """A profile in nanoseconds.

    Args:
        operators: name of each instruction of the program's method, "" for those that are no operators.

    Raises:
        EtdumpError: the ETDump is damaged.
    """
    executions = etdump.read(ended.etdump)
    last = executions[-1]
    costs = tuple(
        OperatorCost(name, delegated, span.ticks, start=span.after(last.span))
        for name, delegated, span in _operators(last, operators)
    )
    stages = tuple(
        (_stage(number, len(executions)), execution.span.ticks) for number, execution in enumerate(executions)
    )
    return CpuProfile(target, "measured", costs, last.span.ticks, stages)


def counted(ended: Ended, target: CpuTarget, operators: Sequence[str]) -> CpuProfile:
    """A profile in instructions, of a process that was traced while its clock counted.

    Raises:
        EtdumpError: the ETDump is damaged.
        RunFailed: its time stamps and the trace do not fit together.
    """
    assert ended.trace is not None
    return _Counting(ended, ended.trace, target, operators).profile()


def _stage(number: int, count: int) -> str:
    if number == count - 1:
        return "this inference"
    return "first inference" if number == 0 else f"inference {number + 1}"


def _operators(execution: Execution, names: Sequence[str]) -> Iterator[tuple[str, bool, Span]]:
    """Name, whether delegated, and span of every operator; a delegate that tells nothing counts as one."""
    for call in execution.calls:
        if call.delegate and call.parts:
            yield from ((part.name, True, part) for part in call.parts)
        elif call.delegate:
            yield "delegate", True, call.span
        else:
            yield names[call.span.instruction], False, call.span


@dataclass(frozen=True)
class _Counting:
    """Turns spans of ticks into windows of the trace."""

    ended: Ended
    trace: Trace
    target: CpuTarget
    operators: Sequence[str]

    def profile(self) -> CpuProfile:
        executions = etdump.read(self.ended.etdump)
        symbols = Symbols(self.ended.maps)
        names = {index: symbols.name(block.address) for index, block in enumerate(self.trace.blocks)}
        last = executions[-1]
        whole = self.trace.tally(0, len(self.trace.windows))
        kernels = sorted(name for name in by_symbol(self.trace.blocks, whole, names) if is_sme_kernel(name))
        return CpuProfile(
            target=self.target,
            nature="emulated-count",
            operators=tuple(self._costs(last, names)),
            inference=self._instructions(*self._windows(last.span)),
            stages=tuple(self._stages(executions)),
            sme_kernels=tuple(kernels),
            sme_instructions=self.trace.classes(whole)[CLASSES.index("sme")],
        )

    def _call(self, tick: int) -> int:
        """Which call of the clock told `tick`."""
        call, reference = self.ended.tick
        return call + (tick - reference) // _NANOSECONDS_PER_CALL

    def _windows(self, span: Span) -> tuple[int, int]:
        return self._call(span.start), self._call(span.end)

    @cached_property
    def _until(self) -> list[int]:
        """Instructions before each window, and in all of them."""
        sizes = [block.instructions for block in self.trace.blocks]
        windows = (
            sum(sizes[index] * count for index, count in window.items()) for window in self.trace.windows
        )
        return list(accumulate(windows, initial=0))

    def _instructions(self, first: int, last: int) -> int:
        return self._until[last] - self._until[first]

    def _stages(self, executions: Sequence[Execution]) -> Iterator[tuple[str, int]]:
        """Every window in exactly one stage."""
        at = 0
        for number, execution in enumerate(executions):
            first, last = self._windows(execution.span)
            between = "set-up: start, load, pack weights" if number == 0 else "between inferences"
            yield between, self._instructions(at, first)
            yield _stage(number, len(executions)), self._instructions(first, last)
            at = last
        yield "end: outputs, profile", self._instructions(at, len(self.trace.windows))

    def _costs(self, execution: Execution, names: Mapping[int, str]) -> Iterator[OperatorCost]:
        origin = self._windows(execution.span)[0]
        for call in execution.calls:
            shift = self._delegate_shift(call)
            for name, delegated, span in _operators(Execution(execution.span, (call,)), self.operators):
                first, last = self._windows(span)
                tally = self.trace.tally(first + shift, last + shift)
                start = self._instructions(origin, first + shift)
                yield replace(self._cost(name, delegated, tally, names), start=start)

    def _delegate_shift(self, call: Call) -> int:
        """By how many calls the parts of a delegate are told too early: one.

        XNNPACK's profiler asks the clock when it starts, and tells its operators from there on; XNNPACK
        itself asks again before its first operator. A delegate's calls are thus: its start, the profiler's,
        XNNPACK's first, one or more for each operator, its end.
        """
        if not (call.delegate and call.parts):
            return 0
        start, end = self._windows(call.span)
        told = [self._windows(part) for part in call.parts]
        edges = [start + 1, *(last for _, last in told)]
        if told != list(pairwise(edges)) or end != edges[-1] + 2:
            why = f"{len(told)} operators at {told[0][0]} to {told[-1][1]}, the delegate at {start} to {end}"
            raise RunFailed(
                "time stamps of a delegate are not where they were expected", where="profile", why=why
            )
        return 1

    def _cost(
        self, name: str, delegated: bool, tally: Counter[int], names: Mapping[int, str]
    ) -> OperatorCost:
        counts = self.trace.classes(tally)
        functions = by_symbol(self.trace.blocks, tally, names).most_common()
        kernels = sorted((item for item in functions if item[0].startswith(_KLEIDIAI)), key=_only_prepares)
        return OperatorCost(
            name,
            delegated,
            sum(counts),
            dict(zip(CLASSES, counts, strict=True)),
            tuple(kernels[:_SHOWN_KERNELS]),
        )

# SPDX-License-Identifier: Apache-2.0
"""A program on the inputs bundled with it against the outputs bundled with it.

Bundled outputs are PyTorch's, of the quantised model: it multiplies and adds in floating point and rounds to
the quantised type afterwards, so that a value close to the middle of two steps may go either way. They are
therefore compared in steps of the output's quantisation, and a result says how many there are between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fvp.compare import Difference, first_difference
from fvp.host.executor import execute_method
from npu.config import NpuConfig
from report import pte
from report.bundle import BundledCase
from report.errors import UsageError

MAX_STEPS = 1
"""Between an output and the bundled one unless asked otherwise: what one rounding makes. Deep networks, where
one step early on becomes several at the end, need more."""


@dataclass(frozen=True)
class BundledOutput:
    """One output of one bundled case.

    Attributes:
        step: of the output's quantisation, in its own unit; None where the program does not dequantise it.
        steps: the largest difference, in those, and `allowed` how many may be; None without a step.
        difference: the first element that differs, None when all are equal.
    """

    method: str
    case: int
    output: int
    elements: int
    step: float | None
    steps: float | None
    allowed: int
    difference: Difference | None

    @property
    def result(self) -> str:
        """exact, close (within `allowed` steps) or different."""
        if self.difference is None:
            return "exact"
        return "close" if self.steps is not None and self.steps <= self.allowed else "different"

    def __str__(self) -> str:
        where = f"bundled case {self.case} of {self.method}, output {self.output}"
        if self.difference is None:
            return f"{where}: exact, {self.elements:,} elements"
        apart = (
            f", {self.steps:g} of {self.allowed} steps of {self.step:.6g}" if self.steps is not None else ""
        )
        return f"{where}: {self.result}{apart}; {self.difference}"


def check_bundle(
    program: pte.Program,
    cases: Sequence[BundledCase],
    config: NpuConfig,
    where: str,
    allowed: int = MAX_STEPS,
) -> list[BundledOutput]:
    """Run every case on the host: delegates on the NPU model, other operators on torch.

    Raises:
        UsageError: a case does not fit its method.
        RunFailed: an operator or a delegate cannot be executed.
    """
    return [
        output
        for number, case in enumerate(cases)
        for output in _check_case(program, number, case, config, where, allowed)
    ]


def _check_case(
    program: pte.Program, number: int, case: BundledCase, config: NpuConfig, where: str, allowed: int
) -> Iterator[BundledOutput]:
    method = program.method(case.method)
    _require_fit(method, case, f"{where}, bundled case {number}")
    found = execute_method(method, program.named_data, case.inputs, config).outputs
    for output, (mine, theirs) in enumerate(zip(found, case.outputs, strict=True)):
        step = _step(method, method.outputs[output])
        largest = float(np.abs(mine.astype(np.float64) - theirs).max(initial=0))
        steps = round(largest / step, 3) if step else None
        difference = first_difference(mine, theirs)
        yield BundledOutput(case.method, number, output, theirs.size, step, steps, allowed, difference)


def _require_fit(method: pte.Method, case: BundledCase, where: str) -> None:
    sides = (("input", method.inputs, case.inputs), ("output", method.outputs, case.outputs))
    for side, indices, arrays in sides:
        wanted = [(t.dtype, t.shape) for t in method.tensors(indices)]
        found = [(str(array.dtype), array.shape) for array in arrays]
        if wanted != found:
            raise UsageError(f"{side}s do not fit the program", where=where, why=f"{found}, not {wanted}")


def _step(method: pte.Method, output: int) -> float | None:
    """Scale of the operator that dequantises the output, which is its second argument."""
    for instruction in method.instructions:
        if isinstance(instruction, pte.KernelCall) and instruction.args[-1] == output:
            if "dequantize_per_tensor" not in instruction.operator:
                return None
            scale = method.values[instruction.args[1]]
            return scale if isinstance(scale, float) else None
    return None

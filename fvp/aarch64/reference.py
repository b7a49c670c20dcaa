# SPDX-License-Identifier: Apache-2.0
"""What a Cortex-A program must compute, and how close is enough.

An fp32 program: its graph before lowering, run by torch. XNNPACK, KleidiAI and torch add up products in
different orders, so outputs differ in their last bits.

An fp16 program: the same graph, summed as the kernels do, see `fp16`; torch sums in fp32, which over tens of
layers gives other numbers. It is one reference for the kernels for SME and one for the others.

A quantised program: the same .pte by ExecuTorch's XNNPACK on the host. Integer arithmetic has one right
answer, so outputs must be equal; only float operators, which dynamic quantisation always has, allow a
tolerance. Torch, which simulates such a program in float, takes the other
step where a value lies between two, and that adds up over layers: how far it is, and how far the float model
is, is told as information and proves nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fvp.compare import exact, unequal_outputs
from report.errors import RunFailed
from report.record import Check

TOLERANCES: Mapping[str, float] = MappingProxyType(
    {"fp32": 1e-4, "fp16": 2e-2, "int8": 5e-2, "int8-dynamic": 5e-2}
)
"""Largest difference allowed, as a part of the reference's largest value, by type. fp16 has a relative
rounding error of 2**-11 at each step, int8 of 1/255 of a tensor's range at each tensor; networks have tens of
them."""


def run_reference(program: Path, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The outputs of the exported program (.pt2) kept by compile, by torch.

    Raises:
        RunFailed: it is gone, or torch cannot run it.
    """
    return _run(program, inputs, lambda module: module)


def run_fp16(program: Path, inputs: Sequence[np.ndarray], *, sme: bool) -> tuple[np.ndarray, ...]:
    """The outputs of an fp16 program in the arithmetic of the kernels, those for SME where there are any.

    Raises:
        RunFailed: as `run_reference`.
    """
    from fvp.aarch64.fp16 import Fp16Kernels

    return _run(program, inputs, lambda module: Fp16Kernels(module, sme=sme).run)


def _run(
    program: Path, inputs: Sequence[np.ndarray], runner: Callable[[Any], Callable[..., Any]]
) -> tuple[np.ndarray, ...]:
    import torch
    import torch.ao.quantization.fx._decomposed  # registers the operators of quantised graphs
    from torch.utils._pytree import tree_leaves

    if not program.is_file():
        raise RunFailed("the reference program is gone", where=str(program), hint="compile again")
    try:
        run = runner(torch.export.load(program).module(check_guards=False))
        with torch.no_grad():
            outputs = run(*(torch.from_numpy(np.array(array)) for array in inputs))
    except Exception as error:  # torch raises whatever an operator meets
        why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        raise RunFailed("torch cannot run the reference program", where=str(program), why=why) from error
    return tuple(value.detach().contiguous().numpy() for value in tree_leaves(outputs))


def check_equal(
    name: str,
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    against: str,
    floats: Sequence[str],
) -> Check:
    """Compare outputs of a quantised program pairwise: equal, or within int8's tolerance behind `floats`.

    Args:
        floats: the program's operators that compute in float; () where it has none.
    """
    check = check_close(name, actual, expected, against, "int8" if floats else "")
    if check.result == "pass" and not check.detail.startswith("exact"):
        return dataclasses.replace(check, detail=f"{check.detail} behind float {', '.join(floats)}")
    return check


def check_close(
    name: str,
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    against: str,
    dtype: str,
) -> Check:
    """Compare outputs pairwise within the tolerance of `dtype`; an unknown type must be equal."""
    tolerance = TOLERANCES.get(dtype, 0.0)
    allowed = f"{tolerance:g} is allowed for {dtype}" if tolerance else "it must be equal"
    try:
        unequal = unequal_outputs(actual, expected, against)
    except ValueError as error:
        return Check(name, "fail", str(error))
    if not unequal:
        return exact(name, len(actual), against)
    for ours, theirs, text in unequal:
        if not _relative(ours, theirs) <= tolerance:  # also when it is no number
            return Check(
                name, "fail", f"{text}; {_relative(ours, theirs):.2g} of the largest value, {allowed}"
            )
    worst = largest_difference(actual, expected)
    return Check(
        name, "pass", f"close to {against}: largest difference {worst:.2g} of the largest value, {allowed}"
    )


def moved(
    outputs: Sequence[np.ndarray], origin: Sequence[np.ndarray], target: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """`outputs` with the difference of two references, `target` - `origin`, added: what `target`'s side gives
    if both sides keep to their references. All float, of equal shapes by pairs."""
    return tuple(
        (out.astype(np.float64) + (to.astype(np.float64) - start)).astype(out.dtype)
        for out, start, to in zip(outputs, origin, target, strict=True)
    )


def largest_difference(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Over all outputs, as a part of the expected output's largest value; inf where that is 0."""
    return max(_relative(ours, theirs) for ours, theirs in zip(actual, expected, strict=True))


def _relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    largest, difference = np.abs(b).max(), float(np.abs(a - b).max())
    return difference / float(largest) if largest else float("inf") if difference else 0.0

# SPDX-License-Identifier: Apache-2.0
"""The test cases of a bundled program (.bpte): inputs, and the outputs that the model gave for them.

Format: ``bundled_program_schema.fbs`` of the executorch wheel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from report import flatschema
from report.pte import SCALAR_TYPES, PteError

IDENTIFIER = b"BP08"


@dataclass(frozen=True)
class BundledCase:
    """One test case of a method; scalars are arrays without dimensions."""

    method: str
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]


def cases(data: bytes, where: str) -> tuple[BundledCase, ...]:
    """The test cases of a bundled program, none for a plain one.

    Raises:
        PteError: damaged data; `where` names it in the message.
    """
    if data[4:8] != IDENTIFIER:
        return ()
    try:
        raw = flatschema.classes(flatschema.BUNDLED_PROGRAM).BundledProgramT.InitFromPackedBuf(data, 0)
        return tuple(_cases(raw))
    except Exception as error:  # the generated code checks nothing: any exception means damage
        raise PteError("damaged bundle", where=where, why=f"{type(error).__name__}: {error}") from error


def _cases(raw: Any) -> Iterator[BundledCase]:
    for suite in raw.methodTestSuites or []:
        for case in suite.testCases or []:
            inputs, outputs = (
                tuple(_array(value) for value in side or []) for side in (case.inputs, case.expectedOutputs)
            )
            yield BundledCase(suite.methodName.decode(), inputs, outputs)


def _array(value: Any) -> np.ndarray:
    """In the order of its dimensions, whatever order it is stored in."""
    kinds = flatschema.classes(flatschema.BUNDLED_PROGRAM).ValueUnion
    if value.valType != kinds.Tensor:
        scalar = {kinds.Int: "intVal", kinds.Bool: "boolVal", kinds.Double: "doubleVal"}[value.valType]
        return np.asarray(getattr(value.val, scalar))
    tensor = value.val
    sizes, order = [int(n) for n in tensor.sizes], [int(n) for n in tensor.dimOrder]
    stored = np.frombuffer(bytes(tensor.data), np.dtype(SCALAR_TYPES[tensor.scalarType]))
    return np.ascontiguousarray(stored.reshape([sizes[d] for d in order]).transpose(np.argsort(order)))

# SPDX-License-Identifier: Apache-2.0
"""From a job to the bytes a firmware gets, and from the bytes it gives to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fvp.platform import Job, nbytes
from fvp.virtual.firmware import Workload
from report import pte
from report.errors import UsageError


def workload(job: Job, folder: Path, where: str) -> tuple[Workload, tuple[tuple[int, ...], ...]]:
    """A job as bytes, and the dimension order of every output.

    Args:
        folder: of this run alone.
        where: the platform, for messages.

    Raises:
        UsageError: the program is damaged, or inputs or outputs are not the program's.
    """
    data = _read(job)
    method = pte.parse(data, str(job.pte)).method()
    inputs = method.tensors(method.inputs)
    outputs = method.tensors(method.outputs)
    sizes = [nbytes(spec) for spec in job.output_specs]
    _require_same("input", [(a.shape, a.nbytes) for a in job.inputs], inputs, where)
    shapes = [shape for shape, _ in job.output_specs]
    _require_same("output", list(zip(shapes, sizes, strict=True)), outputs, where)
    made = Workload(
        program=pte.program_bytes(data, str(job.pte)),
        inputs=tuple(_stored(a, t.dim_order) for a, t in zip(job.inputs, inputs, strict=True)),
        output_sizes=tuple(sizes),
        delegate_calls=sum(isinstance(item, pte.DelegateCall) for item in method.instructions),
        memory_mode=job.memory_mode,
        folder=folder,
        run_id=job.run_id,
    )
    return made, tuple(tensor.dim_order for tensor in outputs)


def _read(job: Job) -> bytes:
    try:
        return job.pte.read_bytes()
    except OSError as error:
        raise UsageError("cannot read the program", where=str(job.pte), why=str(error.strerror)) from error


def _require_same(
    side: str, given: Sequence[tuple[tuple[int, ...], int]], wanted: Sequence[pte.TensorMeta], where: str
) -> None:
    """Shapes and sizes of the job's tensors must be the program's."""
    if len(given) != len(wanted):
        raise UsageError(f"{len(given)} {side}(s) given, the program has {len(wanted)}", where=where)
    for number, ((shape, size), tensor) in enumerate(zip(given, wanted, strict=True)):
        if tuple(shape) != tensor.shape or size != tensor.nbytes:
            raise UsageError(
                f"{side} {number} is {list(shape)} in {size} bytes",
                where=where,
                why=f"the program has {tensor.dtype} {list(tensor.shape)} in {tensor.nbytes} bytes",
            )


def _stored(array: np.ndarray, dim_order: Sequence[int]) -> bytes:
    """An array's bytes in the program's dimension order."""
    return array.transpose(dim_order).tobytes() if array.ndim else array.tobytes()


def restored(data: bytes, shape: Sequence[int], dtype: np.dtype, dim_order: Sequence[int]) -> np.ndarray:
    """The array whose bytes in dimension order `dim_order` are `data`."""
    array = np.frombuffer(data, dtype).reshape([shape[axis] for axis in dim_order])
    return np.ascontiguousarray(array.transpose(np.argsort(dim_order))) if array.ndim else array

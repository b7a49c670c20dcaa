# SPDX-License-Identifier: Apache-2.0
"""What to compile for a Cortex-A and how, as plain data."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from report import compile_report
from report.cortex_a import CpuTarget
from report.errors import UsageError


class CpuDtype(enum.Enum):
    """Types of a program: float, or 8-bit with weights per channel.

    INT8: activations quantised with ranges from calibration. INT8_DYNAMIC: activations quantised while the
    program runs, with the range they have there; linear layers and convolutions.
    """

    FP32 = "fp32"
    FP16 = "fp16"
    INT8 = "int8"
    INT8_DYNAMIC = "int8-dynamic"

    @property
    def quantized(self) -> bool:
        return self in (CpuDtype.INT8, CpuDtype.INT8_DYNAMIC)


_SPELLINGS = {"float32": "fp32", "float16": "fp16", "half": "fp16"}


def parse_cpu_dtype(text: str, *, quantize: bool) -> CpuDtype:
    """The `--dtype` called `text`; without quantisation int8, the default, means fp32.

    Raises:
        UsageError: no such type.
    """
    name = text.lower()
    try:
        dtype = CpuDtype(_SPELLINGS.get(name, name))
    except ValueError:
        known = ", ".join(dtype.value for dtype in CpuDtype)
        hint = f"types for cortex-a: {known}"
        raise UsageError(f"unknown type {text!r}", where="--dtype", hint=hint) from None
    return CpuDtype.FP32 if dtype.quantized and not quantize else dtype


class LayoutFix(enum.Flag):
    """Rewrites that keep tensors in one partition; GELU changes what the model computes, a little."""

    NONE = 0
    NORM = enum.auto()
    GELU = enum.auto()


@dataclass(frozen=True)
class CpuOptions:
    """What is the same for every target; see `aot.options.Options`.

    Attributes:
        keep_out: operators that the partitioner must leave out, by its own names (see `lowering.operators`).
        fix: what to rewrite before quantisation.
    """

    dtype: CpuDtype = CpuDtype.INT8
    delegate: bool = True
    strict: bool = True
    calibration_data: str | None = None
    preprocess: str | None = None
    etrecord: bool = False
    keep_out: tuple[str, ...] = ()
    fix: LayoutFix = LayoutFix.NONE


@dataclass(frozen=True)
class CpuJob:
    """One target with its output file and the folder for what is kept beside it."""

    target: CpuTarget
    pte: Path
    artefacts: Path

    @property
    def report_path(self) -> Path:
        """The compile report, beside the .pte and with its stem."""
        return compile_report.path_for(self.pte)

# SPDX-License-Identifier: Apache-2.0
"""How to compile, as plain data: what the command line asks for, before any heavy package is imported."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from aot.vela_config import VelaSettings
from npu.config import NpuConfig
from report import compile_report
from report.errors import UsageError


class Dtype(enum.Enum):
    """Quantised types: 8-bit weights per channel with 8-bit or 16-bit activations."""

    INT8 = "int8"
    A16W8 = "a16w8"


def parse_dtype(text: str) -> Dtype:
    """The `--dtype` called `text`.

    Raises:
        UsageError: no such type.
    """
    try:
        return Dtype(text.lower())
    except ValueError:
        known = ", ".join(dtype.value for dtype in Dtype)
        raise UsageError(f"unknown type {text!r}", where="--dtype", hint=f"types: {known}") from None


@dataclass(frozen=True)
class Options:
    """What is the same for every target.

    Attributes:
        strict: strict mode of torch.export.
        keep_intermediates: also keep the exported program, the partitioner's report and all of Vela's files.
        quantization_loss: also report what each layer loses by quantisation.
        debug_mode: "json" or "tosa", ExecuTorch's operator mapping and Vela's debug database.
    """

    quantize: bool = True
    delegate: bool = True
    dtype: Dtype = Dtype.INT8
    strict: bool = True
    calibration_data: str | None = None
    preprocess: str | None = None
    keep_intermediates: bool = False
    bundleio: bool = False
    etrecord: bool = False
    quantization_loss: bool = False
    debug_mode: str | None = None

    @property
    def suffix(self) -> str:
        """Suffix of the program that is written."""
        return ".bpte" if self.bundleio else ".pte"


@dataclass(frozen=True)
class Job:
    """One target with its checked settings, its output file, and the folder for what is kept beside it."""

    target: NpuConfig
    settings: VelaSettings
    pte: Path
    artefacts: Path

    @property
    def report_path(self) -> Path:
        """The compile report, beside the .pte and with its stem."""
        return compile_report.path_for(self.pte)

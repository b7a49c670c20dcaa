# SPDX-License-Identifier: Apache-2.0
"""What ExecuTorch and Vela know while they lower, kept: rejected nodes, TOSA graphs, Vela's own files.

ExecuTorch 1.5.1 hands none of it out: the partitioner logs its report as text, and each delegate overwrites
the TOSA and Vela files of the one before (or, asked to keep them, records this machine's path in the .pte).
So for the time of one lowering two names of its modules are replaced by ones that listen.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from aot.vela_config import VelaSettings
from report.errors import CompileError
from report.quiet import Captured, quiet

_LOG = "vela.log"


@dataclass(frozen=True)
class VelaRun:
    """One delegate's way through Vela.

    Attributes:
        blob: the delegate's bytes as they go into the .pte.
        folder: holds ``out.tosa``, ``vela.log`` and Vela's ``output/``.
        seconds: wall time of Vela.
    """

    blob: bytes
    folder: Path
    seconds: float

    @property
    def tosa(self) -> Path:
        """The TOSA flatbuffer that Vela compiled."""
        return self.folder / "out.tosa"

    @property
    def summary(self) -> Path | None:
        """Vela's summary of the network (CSV)."""
        return next((self.folder / "output").glob("*_summary_*.csv"), None)


@dataclass
class LoweringRecord:
    """What was heard during one lowering; `rejected` maps node names to the partitioner's reason."""

    rejected: dict[str, str] = field(default_factory=dict)
    runs: list[VelaRun] = field(default_factory=list)


@contextlib.contextmanager
def recording(settings: VelaSettings, folder: Path, say: Callable[[str], None]) -> Iterator[LoweringRecord]:
    """Record what is lowered inside the block; Vela's files go to ``folder/delegate_N``."""
    from executorch.backends.arm.ethosu import backend
    from executorch.backends.arm.tosa import partitioner
    from executorch.exir.backend.utils import WhyNoPartitionReporter

    record = LoweringRecord()
    upstream = backend.vela_compile

    class Reporter(WhyNoPartitionReporter):
        """Also keeps the first reason given for each node, by node name; the last partitioning counts."""

        def __init__(self) -> None:
            super().__init__()
            record.rejected.clear()

        def report_reject(self, node: Any, reason: str) -> None:
            super().report_reject(node, reason)
            record.rejected.setdefault(node.name, " ".join(reason.split()))

    def vela_compile(tosa: bytes, args: list[str], **options: Any) -> Any:
        index = len(record.runs)
        say(f"vela: delegate {index}, {len(tosa):,} bytes of TOSA")
        start = time.monotonic()
        run_folder = folder / f"delegate_{index}"
        with _vela_folder(run_folder, index) as work:
            arguments = _readable_config(args, settings, work)
            result = upstream(tosa, arguments, **options | {"intermediate_path": str(work)})
        record.runs.append(VelaRun(result.processed_bytes, run_folder, time.monotonic() - start))
        return result

    with (
        mock.patch.object(partitioner, "WhyNoPartitionReporter", Reporter),
        mock.patch.object(backend, "vela_compile", vela_compile),
    ):
        yield record


@contextlib.contextmanager
def _vela_folder(folder: Path, index: int) -> Iterator[Path]:
    """A temporary folder for Vela, moved to `folder` afterwards; what Vela prints goes to its log file.

    Temporary because ExecuTorch splits Vela's arguments at blanks, and `folder` may hold one.
    """
    work = Path(tempfile.mkdtemp(prefix="vela_"))
    printed = Captured()
    try:
        with quiet() as printed:
            yield work
    except (Exception, SystemExit) as error:
        raise CompileError(
            f"Vela cannot compile delegate {index}",
            where="vela",
            why=_vela_reason(printed.text, error),
            hint=f"what Vela printed is in {folder / _LOG}",
        ) from error
    finally:
        (work / _LOG).write_text(printed.text, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work, folder)


def _readable_config(args: list[str], settings: VelaSettings, work: Path) -> list[str]:
    """`args` with the configuration file's recorded name replaced by a copy of the file in `work`."""
    copy = shutil.copyfile(settings.ini_path, work / "vela.ini")
    return [f"--config={copy}" if arg.startswith("--config=") else arg for arg in args]


def _vela_reason(printed: str, error: BaseException) -> str:
    """Vela's own error line when it printed one: it then returns without a result, or exits."""
    told = [line.strip() for line in printed.splitlines() if "error" in line.lower()]
    return told[-1] if told else f"{type(error).__name__}: {error}"

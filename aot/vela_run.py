# SPDX-License-Identifier: Apache-2.0
"""Run Vela on one TOSA graph, keep its files, and turn every way in which it fails into one error."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aot.vela_config import VelaSettings
from report.errors import CompileError
from report.quiet import Captured, quiet

_DEBUG_DATABASE = "--enable-debug-db"
_LOG = "vela.log"
_INI = "vela.ini"


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
    def debug_database(self) -> Path:
        """Vela's account of which operator became which command (XML)."""
        return self.folder / "output" / "out_debug.xml"

    @property
    def summary(self) -> Path | None:
        """Vela's summary of the network (CSV)."""
        return next((self.folder / "output").glob("*_summary_*.csv"), None)


def run_vela(
    tosa: bytes, flags: list[str], settings: VelaSettings, folder: Path, *, keep_all: bool = False
) -> VelaRun:
    """Compile the TOSA flatbuffer `tosa`; Vela's files go to `folder`, which is replaced.

    Args:
        flags: Vela's command line as ExecuTorch's compile specification has it.
        keep_all: also keep what is only a copy: the configuration file and the result as .npz.

    Raises:
        CompileError: Vela refuses the graph or its options.
    """
    from executorch.backends.arm.arm_vela import vela_compile

    start = time.monotonic()
    with _working_folder(folder) as work:
        arguments = _readable_config(flags, settings, work)
        result = vela_compile(tosa, arguments, intermediate_path=str(work))
        if not keep_all:
            for copy in (work / _INI, work / "output" / "out_vela.npz"):
                copy.unlink()
    return VelaRun(result.processed_bytes, folder, time.monotonic() - start)


@contextlib.contextmanager
def _working_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder for Vela, moved to `folder` afterwards; what Vela prints goes to its log file.

    Temporary because ExecuTorch splits Vela's arguments at blanks, and `folder` may hold one. Vela ends the
    process when it dislikes an argument, hence SystemExit.
    """
    work = Path(tempfile.mkdtemp(prefix="vela_"))
    printed = Captured()
    try:
        with quiet() as printed:
            yield work
    except (Exception, SystemExit) as error:
        raise CompileError(
            f"Vela cannot compile {folder.name}",
            where="vela",
            why=_reason(printed.text, error),
            hint=f"what it printed is in {folder / _LOG}",
        ) from error
    finally:
        (work / _LOG).write_text(printed.text, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work, folder)


def _readable_config(flags: list[str], settings: VelaSettings, work: Path) -> list[str]:
    """`flags` with the configuration file's recorded name replaced by a copy of the file in `work`.

    The debug database, which maps commands to operators, is always asked for: it changes no result.
    """
    copy = shutil.copyfile(settings.ini_path, work / _INI)
    readable = [f"--config={copy}" if flag.startswith("--config=") else flag for flag in flags]
    return readable if _DEBUG_DATABASE in readable else [*readable, _DEBUG_DATABASE]


def _reason(printed: str, error: BaseException) -> str:
    """Vela's own error line when it printed one: it then returns without a result, or exits."""
    told = [line.strip() for line in printed.splitlines() if "error" in line.lower()]
    return told[-1] if told else f"{type(error).__name__}: {error}"

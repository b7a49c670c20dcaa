# SPDX-License-Identifier: Apache-2.0
"""What a run reads of a compile report (aot writes it; a .pte and this file are all that passes between)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import vela_debug
from report.errors import UsageError
from report.preprocess import ImagePreprocessing
from report.vela_debug import QueuedOperation

SUFFIX = ".report.json"
SCHEMA_VERSION = 2


@dataclass(frozen=True)
class CompileReport:
    """The parts that a run needs; `data` is the whole document, paths here are resolved.

    Attributes:
        tosa: the TOSA graph that Vela got, by delegate; empty for a Cortex-A.
        reference: for a Cortex-A, the exported program before lowering (.pt2).
        example_inputs: the model's example input, one .npy file for each input; empty when not kept.
    """

    data: Mapping[str, Any]
    path: Path
    pte: Path
    target: str
    tosa: tuple[Path, ...]
    labels: Path | None
    preprocessing: ImagePreprocessing | None
    example_inputs: tuple[Path, ...]
    reference: Path | None = None

    def network_origins(
        self, delegate: int
    ) -> tuple[dict[int, QueuedOperation] | None, list[Mapping[str, Any]]]:
        """Vela's account of a delegate's commands, None where it was not kept, and its TOSA operators.

        See `report.describe.attach_origins`. A delegate that the report does not know has neither.
        """
        if delegate >= len(self.data["delegates"]):
            return None, []
        told = self.data["delegates"][delegate]
        database = self.path.parent / told["debug_database"]
        return vela_debug.read(database) if database.is_file() else None, told["origins"]


def path_for(pte: Path) -> Path:
    """Where the report of the program at `pte` is."""
    return pte.with_name(pte.stem + SUFFIX)


def find(pte: Path) -> CompileReport | None:
    """The report beside `pte`; None when there is none or it describes a file with other content.

    Raises:
        UsageError: the report is there but damaged.
    """
    path = path_for(pte)
    if not path.is_file():
        return None
    report = load(path)
    same = report.data["pte"]["sha256"] == hashlib.sha256(pte.read_bytes()).hexdigest()
    return report if same else None


def load(path: Path) -> CompileReport:
    """Read the report at `path`.

    Raises:
        UsageError: unreadable, damaged, or written by another version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema_version"] != SCHEMA_VERSION:
            raise UsageError(
                f"schema version {data['schema_version']}",
                where=str(path),
                why=f"this tool reads {SCHEMA_VERSION}",
                hint="compile again",
            )
        return _from_json(data, path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError("damaged compile report", where=str(path), why=why, hint="compile again") from error


def _from_json(data: Mapping[str, Any], path: Path) -> CompileReport:
    folder, preprocessing = path.parent, data["preprocessing"]
    return CompileReport(
        data=data,
        path=path,
        pte=folder / data["pte"]["path"],
        target=data["target"],
        tosa=tuple(folder / delegate["tosa"] for delegate in data["delegates"] if "tosa" in delegate),
        reference=folder / data["reference"] if "reference" in data else None,
        labels=folder / data["labels"] if data["labels"] else None,
        preprocessing=ImagePreprocessing.from_json(preprocessing) if preprocessing else None,
        example_inputs=tuple(folder / i["example"] for i in data["inputs"] if i.get("example")),
    )

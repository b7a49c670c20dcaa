# SPDX-License-Identifier: Apache-2.0
"""The run record: what one run did, as plain data. JSON is the source, everything printed derives from it.

`run_record.schema.json` beside this file is its JSON Schema; `SCHEMA_VERSION` changes with it.
"""

from __future__ import annotations

import dataclasses
import json
import textwrap
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from report.errors import UsageError

SCHEMA_VERSION = 1
_SHORT = 160
"""Characters of a fault, which may quote half a record."""
SCHEMA_PATH = Path(__file__).with_name("run_record.schema.json")

EXACT, CLOSE = "exact", "close"
"""How an output compares; what a comparison's detail begins with if it is the first."""

NATURES = ("estimated", "simulated", "emulated-count", "measured", "published")
"""Where a number comes from: a static formula, an executed model, instructions counted by an emulator,
hardware or Arm's FVP, or somebody else's publication. Never mixed in one ratio."""


@dataclass(frozen=True)
class Tensor:
    """One input or output; `path` is the file that holds its raw bytes, when there is one."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    sha256: str
    path: str | None = None


@dataclass(frozen=True)
class Check:
    """One proof: `result` is pass, fail or not run; `detail` says what was compared, or why not.

    `kind` is comparison (outputs against a reference) or evidence (that the platform really ran).
    """

    name: str
    result: str
    detail: str
    kind: str = "comparison"


def agreement(details: Iterable[str]) -> str:
    """How close an output is by the details of its comparisons that passed: EXACT if all of them are."""
    return EXACT if all(detail.startswith(EXACT) for detail in details) else CLOSE


@dataclass(frozen=True)
class Metric:
    """One number with its unit and nature; `value` None is n/a and `note` says why."""

    name: str
    value: float | int | None
    unit: str
    nature: str
    source: str
    note: str = ""

    def __post_init__(self) -> None:
        if self.nature not in NATURES:
            raise ValueError(f"nature {self.nature!r} of {self.name} is not one of {NATURES}")
        if self.value is None and not self.note:
            raise ValueError(f"metric {self.name} is n/a without a reason")


@dataclass(frozen=True)
class Op:
    """One instruction of the program: a delegate call (placement npu) or an operator (placement cpu)."""

    id: int
    name: str
    kind: str
    placement: str
    macs: int | None = None
    cycles: int | None = None


@dataclass(frozen=True)
class Exit:
    """Process exit code and, when it is not 0, the one-line reason."""

    code: int
    reason: str = ""


@dataclass(frozen=True)
class RunRecord:
    """Everything that one run produced. `status` is ok, failed, wrong_output or timeout.

    `profile` is what a CPU's operators cost, by mode, or under "npu" what each operation of the NPU's
    networks does; empty where the platform cannot tell.
    """

    status: str
    exit: Exit
    target: Mapping[str, Any]
    platform: Mapping[str, Any]
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    checks: tuple[Check, ...] = ()
    metrics: tuple[Metric, ...] = ()
    ops: tuple[Op, ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    schema_version: int = SCHEMA_VERSION
    tool: str = field(default_factory=lambda: f"armdeploy {tool_version()}")

    def to_json(self) -> str:
        """The record as one JSON document."""
        return json.dumps(dataclasses.asdict(self), indent=2)


def read(path: Path) -> dict[str, Any]:
    """The record at `path` as data that fits the schema.

    Raises:
        UsageError: it cannot be read, is no run record of this version, or damaged.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse, parse_float=_number)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError("cannot read the record", where=str(path), why=str(error)) from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        why = f"schema version {version}, this tool reads {SCHEMA_VERSION}"
        raise UsageError("no run record", where=str(path), why=why, hint="make one with armdeploy run --json")
    if fault := _fault(data):
        raise UsageError("damaged run record", where=str(path), why=fault)
    return dict(data)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _number(text: str) -> float | int:
    """A whole number is an int however it is written, as the schema takes it for one."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _fault(data: Any) -> str:
    """Where and how `data` breaks the schema, or counts something twice; "" if it does not."""
    from jsonschema import Draft202012Validator  # takes a tenth of a second
    from jsonschema.exceptions import best_match

    validator = Draft202012Validator(json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))
    error = best_match(validator.iter_errors(data))
    if error is None:
        names = [metric["name"] for metric in data["metrics"]]
        twice = next((name for name in names if names.count(name) > 1), None)
        return f"metrics: {twice} twice" if twice is not None else ""
    place = ".".join(map(str, error.absolute_path))
    return f"{place or 'the record'}: {textwrap.shorten(error.message, _SHORT)}"


def tool_version() -> str:
    """Version of the installed armdeploy, "unknown" when run from a bare checkout."""
    try:
        return metadata.version("armdeploy")
    except metadata.PackageNotFoundError:
        return "unknown"

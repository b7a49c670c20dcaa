# SPDX-License-Identifier: Apache-2.0
"""What a test of ExecuTorch's Arm suite came to, and the summary of many."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PASSED, FAILED, XFAILED, XPASSED, SKIPPED = "passed", "failed", "xfailed", "xpassed", "skipped"
NOT_RUN, TIMEOUT, CRASHED = "not run", "timeout", "crashed"

GOOD = frozenset({PASSED, XFAILED, SKIPPED})
"""Outcomes that leave nothing to look at: upstream's own expected failures and skips among them."""

_NO_SIMULATOR = re.compile(r"Did not find Corstone|\[NOTRUN\]")
_TARGET = re.compile(r"_(u55|u65|u85)_")


@dataclass(frozen=True)
class Result:
    """One test.

    Attributes:
        id: pytest's node id below the suite's folder, ``ops/test_abs.py::test_abs_u55_INT[zeros]``.
        outcome: one of the constants above.
        reason: of a failure, skip or expected failure, in a line.
        seconds: wall time.
        detail: end of the failure's text and logs.
    """

    id: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0
    detail: str = ""

    @property
    def operator(self) -> str:
        """The operator under test, from the file's name."""
        return Path(self.id.split("::")[0]).stem.removeprefix("test_")

    @property
    def target(self) -> str:
        """The NPU family in the test's name, or "other"."""
        match = _TARGET.search(self.id.split("::")[-1])
        return match[1] if match else "other"


def expected_failure(reason: str) -> str:
    """Outcome of a test that was expected to fail and did: for want of a simulator it has not run at all."""
    return NOT_RUN if _NO_SIMULATOR.search(reason) else XFAILED


def write(result: Result) -> str:
    """A line of the results file."""
    return json.dumps(asdict(result)) + "\n"


def started(test: str) -> str:
    """The line that is written before a test runs; a crash leaves it without a result."""
    return json.dumps({"started": test}) + "\n"


def read(path: Path, start: int = 0) -> tuple[dict[str, Result], str | None]:
    """Results by test, the last one counting, and the test that was started and never ended.

    Only lines from byte `start` on are read. A line cut off by a kill is passed over.
    """
    results: dict[str, Result] = {}
    open_test: str | None = None
    for line in path.read_bytes()[start:].splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "started" in entry:
            open_test = entry["started"]
        else:
            results[entry["id"]] = Result(**entry)
            open_test = None
    return results, open_test


def summary(results: Iterable[Result], selected: int) -> dict[str, Any]:
    """The JSON summary: counts in all, by target and by operator, and everything that is not good.

    Args:
        results: what has been run.
        selected: how many tests were to run.
    """
    done = sorted(results, key=lambda result: result.id)
    return {
        "selected": selected,
        "done": len(done),
        "seconds": round(sum(result.seconds for result in done), 1),
        "outcomes": _counts(done),
        "by_target": _grouped(done, "target"),
        "by_operator": _grouped(done, "operator"),
        "expected_failures": dict(
            sorted(Counter(result.reason for result in done if result.outcome == XFAILED).items())
        ),
        "to_look_at": [
            {"id": result.id, "outcome": result.outcome, "reason": result.reason}
            for result in done
            if result.outcome not in GOOD
        ],
    }


def _counts(results: Iterable[Result]) -> dict[str, int]:
    return dict(sorted(Counter(result.outcome for result in results).items()))


def _grouped(results: list[Result], attribute: str) -> Mapping[str, dict[str, int]]:
    names = sorted({getattr(result, attribute) for result in results})
    return {name: _counts(r for r in results if getattr(r, attribute) == name) for name in names}

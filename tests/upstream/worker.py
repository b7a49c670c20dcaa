# SPDX-License-Identifier: Apache-2.0
"""Runs chosen tests of ExecuTorch's Arm suite in this process and appends each result to a file.

``worker.py collect TESTS_FILE`` writes the node ids of all tests for Ethos-U. ``worker.py run RESULTS_FILE
TIMEOUT SECONDS < ids`` runs the ids on standard input for at most SECONDS, each for at most TIMEOUT seconds.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib.util
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from aot.quicken import quickened  # noqa: E402
from tests.upstream import outcomes  # noqa: E402 (found through the line above, from any folder)
from tests.upstream.outcomes import Result  # noqa: E402

SELECTION = "u55 or u85 or u65"
_HUNG_AFTER = 60.0
"""Seconds after a test's limit at which native code that lets no signal handler run is ended."""

_DETAIL_CHARACTERS = 6000


class TimeLimit(BaseException):
    """A test ran longer than it may. No Exception: the suite catches those."""


def suite() -> Path:
    """The folder of ExecuTorch's Arm tests."""
    spec = importlib.util.find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("executorch is not installed; run ./setup.sh")
    return Path(next(iter(spec.submodule_search_locations))) / "backends" / "arm" / "test"


def run_pytest(files: list[str], plugin: object, *options: str) -> int:
    """Run pytest on files of the suite with nothing but the suite's own configuration."""
    folder = suite()
    common = ["-c", "/dev/null", f"--rootdir={folder}", "-p", "no:cacheprovider", "-q", "--no-header"]
    paths = [str(folder / file) for file in files]
    return int(pytest.main([*common, "-k", SELECTION, *options, *paths], plugins=[plugin]))


class Collector:
    """Keeps the node ids."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All tests are known."""
        self.ids = [item.nodeid for item in session.items]


class Recorder:
    """Selects, times and records tests.

    Args:
        wanted: node ids to run.
        path: file that results are appended to.
        timeout: seconds for one test.
        end: `time.monotonic` after which no further test starts.
    """

    def __init__(self, wanted: set[str], path: Path, timeout: float, end: float) -> None:
        self._wanted, self._timeout, self._end = wanted, timeout, end
        self._file = path.open("a", buffering=1)
        self._reports: list[pytest.TestReport] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the wanted tests."""
        items[:] = [item for item in items if item.nodeid in self._wanted]
        gc.collect()
        gc.freeze()  # torch and executorch leave millions of objects, which every collection would visit

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Time one test and write down what it came to."""
        if time.monotonic() > self._end:
            item.session.shouldstop = "time limit"
            yield
            return
        self._file.write(outcomes.started(item.nodeid))
        self._reports.clear()
        start = time.monotonic()
        with _limited(self._timeout):
            yield
        result = classify(item.nodeid, self._reports, time.monotonic() - start)
        self._file.write(outcomes.write(result))
        gc.collect()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the reports of the running test."""
        self._reports.append(report)


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` in the body after some seconds; end the process if that does not help."""

    def over(_number: int, _frame: FrameType | None) -> None:
        raise TimeLimit(f"no result within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(seconds + _HUNG_AFTER, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def classify(test: str, reports: list[pytest.TestReport], seconds: float) -> Result:
    """What the reports of one test's phases come to; the first phase that did not pass tells."""
    for report in reports:
        expected = getattr(report, "wasxfail", None)
        if report.outcome == "skipped" and expected is not None:
            return Result(test, outcomes.expected_failure(expected), expected, seconds)
        if report.outcome == "skipped":
            return Result(test, outcomes.SKIPPED, _skip_reason(report), seconds)
        if report.outcome == "failed":
            return _failure(test, report, seconds)
        if expected is not None and report.when == "call":
            return Result(test, outcomes.XPASSED, expected, seconds)
    return Result(test, outcomes.PASSED if reports else outcomes.CRASHED, "", seconds)


def _failure(test: str, report: pytest.TestReport, seconds: float) -> Result:
    text = report.longreprtext
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    reason = lines[0] if lines else (text.strip().splitlines() or [""])[-1]
    strict = "[XPASS(strict)]" in text
    outcome = outcomes.XPASSED if strict else outcomes.TIMEOUT if "TimeLimit:" in reason else outcomes.FAILED
    detail = "\n".join([text, report.caplog])[-_DETAIL_CHARACTERS:]
    return Result(test, outcome, reason[:500], seconds, detail)


def _skip_reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    return str(where[2]) if isinstance(where, tuple) else str(where)


def main(arguments: list[str]) -> int:
    """See the module's text."""
    if arguments[0] == "collect":
        collector = Collector()
        run_pytest(["ops"], collector, "--collect-only", "-qq")
        Path(arguments[1]).write_text(json.dumps(collector.ids))
        return 0 if collector.ids else 1
    results, timeout, seconds = Path(arguments[1]), float(arguments[2]), float(arguments[3])
    wanted = sys.stdin.read().split("\n")
    files = sorted({test.split("::")[0] for test in wanted})
    recorder = Recorder(set(wanted), results, timeout, time.monotonic() + seconds)
    with quickened():
        return run_pytest(files, recorder, "--tb=short")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

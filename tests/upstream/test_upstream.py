# SPDX-License-Identifier: Apache-2.0
"""The harness around ExecuTorch's suite: outcomes, selection, resuming, tests that hang or die."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from report.errors import RunFailed, UsageError
from tests.upstream import outcomes, run, worker
from tests.upstream.outcomes import Result

SUITE = """
import os, time
import pytest

def test_a_u55_passes():
    pass

def test_b_u55_fails():
    raise ValueError("wrong output")

@pytest.mark.xfail(reason="numerics")
def test_c_u85_xfail():
    assert False

@pytest.mark.xfail(reason="Did not find Corstone-320 FVP or executor_runner on path")
def test_d_u85_no_simulator():
    raise FileNotFoundError("elf")

@pytest.mark.xfail(reason="should fail", strict=True)
def test_e_u65_strict():
    pass

@pytest.mark.skip(reason="flaky")
def test_f_u65_skipped():
    pass

def test_g_u85_hangs():
    while True:
        try:
            time.sleep(60)
        except Exception:
            pass

def test_h_u85_dies():
    os._exit(3)

@pytest.fixture
def broken():
    raise RuntimeError("set-up")

def test_i_u85_set_up(broken):
    pass

def test_j_u55_passes_after_all_that():
    pass

def test_k_vgf():
    pass
"""

EXPECTED = {
    "a_u55_passes": "passed",
    "b_u55_fails": "failed",
    "c_u85_xfail": "xfailed",
    "d_u85_no_simulator": "not run",
    "e_u65_strict": "xpassed",
    "f_u65_skipped": "skipped",
    "g_u85_hangs": "timeout",
    "h_u85_dies": "crashed",
    "i_u85_set_up": "failed",
    "j_u55_passes_after_all_that": "passed",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An ``executorch`` whose Arm suite is SUITE, and a ``torch`` that is quick to import."""
    root = tmp_path_factory.mktemp("site")
    ops = root / "executorch" / "backends" / "arm" / "test" / "ops"
    ops.mkdir(parents=True)
    (ops / "test_thing.py").write_text(SUITE)
    for module in (
        "executorch/__init__",
        "torch/__init__",
        "torch/_ops",
        "torch/_export/__init__",
        "torch/export/__init__",
        "torch/fx/__init__",
    ):
        (root / module).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{module}.py").write_text("")
    (root / "torch/_export/utils.py").write_text("def _collect_all_valid_cia_ops(): return set()\n")
    for name in ("decomp_utils", "exported_program"):
        (root / f"torch/export/{name}.py").write_text("")
    (root / "torch/_ops.py").write_text("from collections.abc import Callable\n")
    (root / "torch/fx/traceback.py").write_text("class NodeSource: pass\n")
    return {"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}


def ids(*names: str) -> list[str]:
    return [f"ops/test_thing.py::test_{name}" for name in names]


def test_only_ethos_u_tests_are_collected_and_once(tmp_path: Path, environment: dict[str, str]) -> None:
    assert run.collected(tmp_path, environment) == ids(*EXPECTED)
    assert run.collected(tmp_path, {}) == ids(*EXPECTED)


def test_every_outcome_is_recorded_and_none_stops_the_rest(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.jsonl"
    run.run(ids(*EXPECTED), path, 1.0, time.monotonic() + 120, environment)
    results, open_test = outcomes.read(path)
    assert {test: result.outcome for test, result in results.items()} == dict(
        zip(ids(*EXPECTED), EXPECTED.values(), strict=True)
    )
    assert open_test is None
    reasons = {test.split("::test_")[1]: result.reason for test, result in results.items()}
    assert reasons["b_u55_fails"] == "ValueError: wrong output" and reasons["c_u85_xfail"] == "numerics"
    assert "exit status 3" in reasons["h_u85_dies"] and "no result within 1 s" in reasons["g_u85_hangs"]
    assert reasons["f_u65_skipped"] == "Skipped: flaky" and reasons["e_u65_strict"]

    monkeypatch.setattr(run, "_work", None)  # nothing is left to do
    run.run(ids(*EXPECTED), path, 1.0, time.monotonic() + 120, environment)


def test_interrupted_run_goes_on_and_failures_can_be_repeated(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    path = tmp_path / "results.jsonl"
    chosen = ids("a_u55_passes", "b_u55_fails")
    done = outcomes.write(Result(chosen[0], "passed", seconds=99.0))
    path.write_text(outcomes.started(chosen[0]) + done + outcomes.started(chosen[1]) + '{"id": "ops/te')
    run.run(chosen, path, 10.0, time.monotonic() + 60, environment)
    results, _ = outcomes.read(path)
    assert results[chosen[0]].seconds == 99.0 and results[chosen[1]].outcome == "failed"
    lines = len(path.read_text().splitlines())
    run.run(chosen, path, 10.0, time.monotonic() + 60, environment, again=True)
    assert len(path.read_text().splitlines()) == lines + 2


def test_time_limit_leaves_the_rest_for_later(tmp_path: Path, environment: dict[str, str]) -> None:
    path = tmp_path / "results.jsonl"
    run.run(ids("a_u55_passes"), path, 10.0, time.monotonic() - 1, environment)
    assert not path.exists()


def test_worker_that_runs_nothing_is_an_error(tmp_path: Path, environment: dict[str, str]) -> None:
    with pytest.raises(RunFailed, match="runs no test"):
        run.run(ids("absent"), tmp_path / "r.jsonl", 10.0, time.monotonic() + 60, environment)


def test_selection() -> None:
    tests = [f"ops/test_add.py::test_add_u{n}[{i}]" for n in (55, 65, 85) for i in range(10)]
    sample = run.select(tests, "", 6, 0, "1/1")
    assert sample == run.select(list(reversed(tests)), "", 6, 0, "1/1") and len(set(sample)) == 6
    assert sample != run.select(tests, "", 6, 1, "1/1")
    shards = [run.select(tests, "u85", None, 0, f"{i}/3") for i in (1, 2, 3)]
    assert sorted(test for shard in shards for test in shard) == sorted(
        test for test in tests if "u85" in test
    )
    assert run.select(tests, "u85 and [3]", 99, 0, "1/1") == ["ops/test_add.py::test_add_u85[3]"]
    assert len(run.select(tests, "u85 and [3] or u55", None, 0, "1/1")) == 11
    for shard in ("0/3", "4/3", "a/b", "3"):
        with pytest.raises(UsageError, match="is no I/N"):
            run.select(tests, "", None, 0, shard)
    with pytest.raises(UsageError, match="no test is selected"):
        run.select(tests, "absent", None, 0, "1/1")


def test_summary_counts_and_lists_what_is_not_good() -> None:
    results = [
        Result("ops/test_add.py::test_add_u55_INT[x]", "passed", seconds=1.0),
        Result("ops/test_add.py::test_add_u85_INT[x]", "failed", "wrong", 2.0),
        Result("ops/test_cos.py::test_cos_u65_INT", "xfailed", "numerics", 3.0),
        Result("ops/test_cos.py::test_cos_u85_INT", "not run", "Did not find Corstone-320"),
    ]
    made = outcomes.summary(results, 5)
    assert made["outcomes"] == {"failed": 1, "not run": 1, "passed": 1, "xfailed": 1}
    assert made["by_operator"]["add"] == {"failed": 1, "passed": 1}
    assert made["by_target"]["u85"] == {"failed": 1, "not run": 1}
    assert (made["selected"], made["done"], made["seconds"]) == (5, 4, 6.0)
    assert made["expected_failures"] == {"numerics": 1}
    assert [entry["outcome"] for entry in made["to_look_at"]] == ["failed", "not run"]
    assert json.loads(json.dumps(made)) == made


def test_ordinary_runner_is_bounded_as_upstreams() -> None:
    operators = run.boundary_operators()
    assert "quantized_decomposed::quantize_per_tensor.out" in operators
    assert "cortex_m::quantize_per_tensor.out" in operators
    assert not [name for name in operators if name.startswith("aten::")]


def test_suite_is_the_installed_one() -> None:
    assert (worker.suite() / "runner_utils.py").is_file() and str(worker.suite()).startswith(sys.prefix)

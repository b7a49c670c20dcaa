#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch's own Arm test suite on the open FVP front ends and this project's runner.

Every test compiles a model with ExecuTorch and Vela, runs it as it would on Arm's FVP and compares the
outputs with PyTorch. Results are appended to a file, so that an interrupted run goes on where it was; the
summary by operator and outcome is JSON on standard output.

    tests/upstream/run.py --sample 150 --seed 0        a fixed sample
    tests/upstream/run.py --shard 1/4 --time-limit 3600
    tests/upstream/run.py -k "test_add and u85"
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fvp.virtual import runner_build  # noqa: E402 (found through the line above, from any folder)
from npu.config import Family  # noqa: E402
from report.arguments import Parser, guarded  # noqa: E402
from report.errors import RunFailed, UsageError  # noqa: E402
from tests.upstream import outcomes  # noqa: E402
from tests.upstream.outcomes import CRASHED, TIMEOUT, Result  # noqa: E402

WORKER = Path(__file__).with_name("worker.py")

RUNNERS = {"corstone-300": Family.U55, "corstone-300-u65": Family.U65, "corstone-320": Family.U85}
"""Boards as the suite names them, and what is built for each."""


def parser() -> Parser:
    """The command line."""
    made = Parser(prog="tests/upstream/run.py", description=__doc__.split("\n\n")[0] if __doc__ else None)
    made.add_argument("--results", type=Path, default=ROOT / "out" / "upstream", help="folder of the results")
    made.add_argument("--sample", type=int, metavar="N", help="run N tests drawn with --seed")
    made.add_argument("--seed", type=int, default=0, help="of --sample (default: 0)")
    made.add_argument("--shard", default="1/1", metavar="I/N", help="run every Nth test from the Ith on")
    made.add_argument(
        "-k", dest="words", default="", help="run tests whose id has these words (a and b or c)"
    )
    made.add_argument("--time-limit", type=float, default=1e6, metavar="SECONDS", help="stop after this time")
    made.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="for one test")
    made.add_argument("--again", action="store_true", help="run again what did not pass")
    made.add_argument("--fvp", type=Path, default=ROOT / "fvp" / "bin", help="folder of the FVP programs")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite; exit code 0 when nothing is left to look at, 5 otherwise."""
    return guarded("tests/upstream/run.py", lambda: _main(parser().parse_args(arguments)))


def _main(args) -> int:  # type: ignore[no-untyped-def]
    args.results.mkdir(parents=True, exist_ok=True)
    environment = prepare(args.results / "root", args.fvp)
    tests = select(collected(args.results, environment), args.words, args.sample, args.seed, args.shard)
    path = args.results / "results.jsonl"
    run(tests, path, args.timeout, time.monotonic() + args.time_limit, environment, again=args.again)
    results, _ = outcomes.read(path)
    made = outcomes.summary([results[test] for test in tests if test in results], len(tests))
    text = json.dumps(made, indent=1)
    (args.results / "summary.json").write_text(text + "\n")
    print(text)
    return 0 if made["done"] == made["selected"] and not made["to_look_at"] else RunFailed.exit_code


def prepare(root: Path, programs: Path) -> dict[str, str]:
    """The environment of the suite: FVP programs on PATH, our runners where it looks for them.

    As upstream's, the ordinary runner has no portable kernels: there are tests that expect an operator left
    on the CPU to fail in it, and others that ask for the runner with all kernels.
    """
    bounded = {"EXECUTORCH_SELECT_OPS_LIST": ",".join(boundary_operators())}
    for board, family in RUNNERS.items():
        everything = runner_build.for_family(family)
        requests = {"": replace(everything, options=bounded), "portable-ops_": everything}
        for portable, request in requests.items():
            place = root / "arm_test" / f"arm_semihosting_executor_runner_{portable}{board}"
            place.mkdir(parents=True, exist_ok=True)
            elf = runner_build.build(request)
            shutil.copy2(elf, place / runner_build.NAME)  # a later build must not change a run under way
    path = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
    return os.environ | {"PATH": path, "EXECUTORCH_ROOT": str(root)}


def boundary_operators() -> list[str]:
    """Operators around delegates: quantise and dequantise, the Cortex-M kernels, the runtime's own."""
    table = json.loads((ROOT / "runtime" / "kernels" / "kernels.json").read_text())
    return sorted(
        operator
        for group in table["kernels"]
        for operator in group["operators"]
        if group["library"] != "portable"
    )


def collected(folder: Path, environment: dict[str, str]) -> list[str]:
    """Node ids of every Ethos-U test under ops/, collected once per folder (it takes a minute)."""
    path = folder / "tests.json"
    if not path.exists():
        print("collecting the tests", file=sys.stderr)
        command = [sys.executable, str(WORKER), "collect", str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunFailed("the suite does not collect", why=(done.stdout + done.stderr)[-500:])
    return json.loads(path.read_text())


def select(tests: Sequence[str], words: str, sample: int | None, seed: int, shard: str) -> list[str]:
    """The tests to run: first the words, then the sample, then the shard.

    Raises:
        UsageError: the shard is no I/N with 1 <= I <= N, or nothing is left.
    """
    wanted = [part.split(" and ") for part in words.split(" or ")]
    chosen = sorted(t for t in tests if any(all(word.strip() in t for word in part) for part in wanted))
    if sample is not None:
        chosen = sorted(random.Random(seed).sample(chosen, min(sample, len(chosen))))
    index, _, count = shard.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard {shard!r} is no I/N with 1 <= I <= N")
    chosen = chosen[int(index) - 1 :: int(count)]
    if not chosen:
        raise UsageError("no test is selected", hint="see -k, --sample and --shard")
    return chosen


def run(
    tests: Sequence[str],
    path: Path,
    timeout: float,
    end: float,
    environment: dict[str, str],
    *,
    again: bool = False,
) -> None:
    """Run what has no result yet; a test that takes its process along is recorded, and the rest goes on."""
    before, _ = outcomes.read(path)
    finished = {test for test, result in before.items() if not again or result.outcome in outcomes.GOOD}
    start = path.stat().st_size if path.exists() else 0
    rest = [test for test in tests if test not in finished]
    print(f"{len(rest)} of {len(tests)} tests to run; results go to {path}", file=sys.stderr)
    while rest and time.monotonic() < end:
        began = time.monotonic()
        status = _work(rest, path, timeout, end, environment)
        new, open_test = outcomes.read(path, start)
        if open_test is not None:
            new[open_test] = _crash(open_test, path, status, time.monotonic() - began > timeout)
        elif not new and time.monotonic() < end:
            raise RunFailed("the worker runs no test", why=f"it ended with {status}; see {path}")
        rest = [test for test in rest if test not in new]


def _crash(test: str, path: Path, status: int, long: bool) -> Result:
    """Write down the test that took its process along."""
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    result = Result(test, TIMEOUT if long and status == 1 else CRASHED, f"the process ended with {how}")
    with path.open("a") as file:
        file.write(outcomes.write(result))
    return result


def _work(tests: Sequence[str], path: Path, timeout: float, end: float, environment: dict[str, str]) -> int:
    """One worker process until it ends; its output goes to a log beside the results."""
    command = [sys.executable, str(WORKER), "run", str(path), str(timeout), str(end - time.monotonic())]
    with path.with_suffix(".log").open("ab") as log:
        worker = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
        )
        try:
            worker.communicate("\n".join(tests).encode())
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
    return worker.returncode


if __name__ == "__main__":
    sys.exit(main())

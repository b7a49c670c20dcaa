# SPDX-License-Identifier: Apache-2.0
"""Fuzzer of the NPU model: damaged containers and command streams give outputs or a typed error, soon.

    python tests/npu/fuzz.py --minutes 30 [--seed N] [--corpus FOLDER] [--json FILE]

Starts from the golden delegates, and from Vela's raw results (*_vela.npz) in FOLDER. Damages bytes of the
container, or single commands: a bit, a field's extreme value, a command left out, repeated or put in. A case
that raises anything but NpuError, takes more than 20 s of CPU time, or makes the process grow beyond its
limit is a failure; its bytes are written beside the summary. Exit code 0 without a failure, else 5.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import golden  # noqa: E402

from npu import isa, stream  # noqa: E402
from npu.config import from_config_word, npu_config  # noqa: E402
from npu.container import VelaBin, load_raw_npz, parse_velabin  # noqa: E402
from npu.errors import NpuError  # noqa: E402
from npu.machine import Npu, _regions, execute  # noqa: E402
from npu.memory import ArrayMemory  # noqa: E402

CASE_SECONDS = 20
MEMORY_MB = 6144
_LARGEST_SEED_FILE = 100_000


class TooSlow(Exception):
    """A case that takes longer than it may."""


def _ring(*_: object) -> None:
    raise TooSlow(f"more than {CASE_SECONDS} s")


@dataclass(frozen=True)
class Case:
    """One damaged input: bytes to keep when it fails, and what to do with them."""

    data: bytes
    run: Callable[[], object]


class Cases:
    """Draws damaged inputs."""

    def __init__(self, rng: random.Random, corpus: Path | None):
        self._rng = rng
        self._containers = [golden.load(name) for name in golden.NAMES]
        self._networks = [parse_velabin(case.container) for case in self._containers]
        paths = [] if corpus is None else sorted(corpus.rglob("*_vela.npz"))
        small = [path for path in paths if path.stat().st_size < _LARGEST_SEED_FILE]
        self._networks += [load_raw_npz(path) for path in small]

    def draw(self) -> Case:
        """A damaged container or a damaged stream."""
        return self._container() if self._rng.random() < 0.3 else self._stream()

    def _container(self) -> Case:
        case = self._rng.choice(self._containers)
        data = bytearray(case.container)
        for _ in range(self._rng.choice((1, 1, 2, 8))):
            data[self._rng.randrange(len(data))] = self._rng.choice((0, 255, self._rng.randrange(256)))
        if self._rng.random() < 0.2:
            del data[self._rng.randrange(len(data)) :]
        blob = bytes(data)
        return Case(blob, lambda: execute(parse_velabin(blob), npu_config(case.npu), case.inputs))

    def _stream(self) -> Case:
        network = self._rng.choice(self._networks)
        parsed = stream.parse(network.cmd_data)
        config = from_config_word(parsed.config_word)
        commands = list(parsed.commands)
        for _ in range(self._rng.choice((1, 1, 2, 3, 6))):
            self._damage(commands, list(isa.BY_NAME[config.family].values()))
        data = stream.encode_all(commands)
        return Case(data, lambda: Npu(config).run_commands(data, self._memory(network)))

    def _memory(self, network: VelaBin) -> ArrayMemory:
        return ArrayMemory(_regions(network))

    def _damage(self, commands: list[stream.Command], specs: list[isa.CommandSpec]) -> None:
        place, kind = self._rng.randrange(len(commands)), self._rng.random()
        if kind < 0.6:
            commands[place] = self._altered(commands[place])
        elif kind < 0.75 and len(commands) > 1:
            del commands[place]
        elif kind < 0.9:
            commands.insert(place, self._rng.choice(commands))
        else:
            spec = self._rng.choice(specs)
            operand = self._rng.getrandbits(48 if spec.wide else 16) & spec.field_mask
            commands.insert(place, stream.from_operand(spec, operand))

    def _altered(self, command: stream.Command) -> stream.Command:
        bits = 48 if command.spec.wide else 16
        every = (1 << bits) - 1
        operand = self._rng.choice(
            (
                command.operand ^ 1 << self._rng.randrange(bits),
                self._rng.getrandbits(bits),
                0,
                every,
                command.operand + self._rng.choice((-1, 1)) & every,
            )
        )
        if self._rng.random() < 0.9:
            operand &= command.spec.field_mask
        return stream.from_operand(command.spec, operand)


@dataclass
class Outcome:
    """Counts of a run: "ok" or the class of the typed error; failures in words."""

    counts: Counter[str]
    failures: list[str]
    slowest: float = 0.0


def fuzz(cases: Cases, seconds: float, keep: Callable[[int, bytes], None]) -> Outcome:
    """Run damaged cases until the time is over."""
    outcome = Outcome(Counter(), [])
    end = time.monotonic() + seconds
    signal.signal(signal.SIGPROF, _ring)
    while time.monotonic() < end:
        case, start = cases.draw(), time.process_time()
        signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)  # CPU time: the computer may be busy
        try:
            case.run()
            outcome.counts["ok"] += 1
        except NpuError as error:
            outcome.counts[type(error).__name__] += 1
        except (Exception, TooSlow) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            outcome.failures.append(f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})")
            keep(len(outcome.failures), case.data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        outcome.slowest = max(outcome.slowest, time.process_time() - start)
    return outcome


def main() -> int:
    """Command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, help="folder with more of Vela's raw results")
    parser.add_argument("--json", type=Path, default=Path("out/fuzz/npu.json"), help="summary")
    options = parser.parse_args()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, MEMORY_MB << 20))
    np.seterr(all="ignore")

    def keep(number: int, data: bytes) -> None:
        options.json.with_name(f"failure-{options.seed}-{number}.bin").write_bytes(data)

    cases = Cases(random.Random(options.seed), options.corpus)
    outcome = fuzz(cases, 60 * options.minutes, keep)
    summary = {
        "seed": options.seed,
        "minutes": options.minutes,
        "cases": sum(outcome.counts.values()) + len(outcome.failures),
        "outcomes": dict(outcome.counts),
        "failures": outcome.failures,
        "slowest_cpu_seconds": round(outcome.slowest, 1),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
    options.json.write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps(summary, indent=1))
    return 5 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())

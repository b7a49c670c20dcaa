# SPDX-License-Identifier: Apache-2.0
"""Operator conformance: TOSA tests compiled by Vela, executed, compared with tosa_reference_model.

    python -m tests.conformance.run --set quick|full [--lists FOLDER]
    python -m tests.conformance.run --seed N [--share 0.3]

A run can be stopped and started again: verdicts are kept, line by line, in the output folder. Exit codes: 0
every accepted test is exact or of a known class and nothing is unlike the list; 2 usage; 3 a list is missing;
5 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from npu.config import CONFIGS, npu_config
from tests.conformance import sets
from tests.conformance.cases import Case, Verdict, judge

DEFAULT_NPUS = "ethos-u55-128,ethos-u65-256,ethos-u85-256"
STATUSES = ("exact", "different", "rejected", "not modelled", "error", "no reference", "not made")


def family_key(npu: str) -> str:
    """ethos-u55-128 -> u55, the key of published expectations."""
    return npu_config(npu).family.name.lower()


class Journal:
    """Verdicts kept in a file, a line each; a half-written last line is dropped."""

    def __init__(self, path: Path):
        self._path = path
        self.verdicts: dict[tuple[str, str], Verdict] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                verdict = Verdict(**json.loads(line))
            except (ValueError, TypeError):
                continue
            self.verdicts[verdict.test, verdict.npu] = verdict

    def add(self, verdict: Verdict) -> None:
        """Keep one more."""
        self.verdicts[verdict.test, verdict.npu] = verdict
        with self._path.open("a") as file:
            file.write(json.dumps(verdict.as_dict()) + "\n")


def run(
    entries: Iterable[sets.Entry],
    maker: sets.Maker,
    npus: Sequence[str],
    folder: Path,
    progress: Callable[[str], None] = lambda text: None,
) -> list[tuple[sets.Entry, Verdict]]:
    """Judge every entry on every NPU, except what the journal in `folder` already holds."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(folder / "verdicts.jsonl")
    results = []
    for entry in entries:
        missing = [npu for npu in npus if (entry.test, npu) not in journal.verdicts]
        for verdict in _judged(entry, maker, missing, folder):
            journal.add(verdict)
            if verdict.status not in ("exact", "rejected"):
                progress(f"{verdict.test} {verdict.npu}: {verdict.status} {verdict.known} {verdict.detail}")
        results += [(entry, journal.verdicts[entry.test, npu]) for npu in npus]
    return results


def _judged(entry: sets.Entry, maker: sets.Maker, npus: Sequence[str], folder: Path) -> Iterator[Verdict]:
    if not npus:
        return
    place = maker.folder(entry.test)
    for npu in npus:
        if place is None:
            yield Verdict(entry.test, entry.op, npu, "not made")
        else:
            work = folder / "compiled" / npu / entry.test
            yield judge(Case(place), entry.test, entry.op, npu, work)


# --- judging the whole --------------------------------------------------------------------------------------


def is_good(verdict: Verdict) -> bool:
    """Exact, refused by Vela, or explained by a rule."""
    return verdict.status in ("exact", "rejected", "no reference") or bool(verdict.known)


def unlike(entry: sets.Entry, verdict: Verdict) -> str:
    """How a verdict departs from what the list says, "" if it does not."""
    wanted = entry.expected.get(family_key(verdict.npu), "")
    if not wanted:
        return ""
    # A composite's last operator is drawn by lot, and of K9's configuration the lists do not speak: there
    # they say only whether Vela takes the test.
    lenient = entry.test.startswith("FU2/") or verdict.known == "K9"
    known = "" if lenient else verdict.known
    got = "reject" if verdict.status in ("rejected", "no reference") else known or "accept"
    if wanted.split()[0] == got:
        return ""
    # Whether a test shows one of the compiler's faults depends on its data.
    return "" if wanted.startswith("K") and verdict.status == "exact" else f"{wanted} expected, {got}"


def table(results: Sequence[tuple[sets.Entry, Verdict]], npus: Sequence[str]) -> str:
    """Markdown: a row per operator, for each NPU accepted / exact / known / different / not modelled."""
    lines = ["| operator | tests | " + " | ".join(npus) + " |", "|---|---|" + "---|" * len(npus)]
    operators = sorted({entry.op for entry, _ in results})
    for op in (*operators, None):
        own = [verdict for entry, verdict in results if op in (None, entry.op)]
        cells = [_cell([verdict for verdict in own if verdict.npu == npu]) for npu in npus]
        lines.append(f"| {op or '**all**'} | {len(own) // len(npus)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(verdicts: Sequence[Verdict]) -> str:
    accepted = [v for v in verdicts if v.status in ("exact", "different", "not modelled", "error")]
    if not accepted:
        return "-"
    known = sum(bool(v.known) for v in accepted)
    counts = Counter(v.status for v in accepted if not v.known)
    wrong = counts["different"] + counts["error"]
    return f"{len(accepted)} / {counts['exact']} / {known} / {wrong} / {counts['not modelled']}"


def summary(results: Sequence[tuple[sets.Entry, Verdict]], npus: Sequence[str]) -> dict[str, object]:
    """The run as data."""
    totals = {npu: dict(Counter(v.known or v.status for _, v in results if v.npu == npu)) for npu in npus}
    unexpected = [{"test": v.test, "npu": v.npu, "what": text} for e, v in results if (text := unlike(e, v))]
    return {
        "schema_version": 1,
        "tests": len(results) // max(1, len(npus)),
        "npus": list(npus),
        "totals": totals,
        "unexpected": unexpected,
        "verdicts": [v.as_dict() for _, v in results if v.status not in ("exact", "rejected")],
    }


# --- command line -------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--set", choices=("quick", "full"), help="a published list of tests")
    which.add_argument("--seed", type=int, help="draw tests with this seed")
    parser.add_argument("--share", type=float, default=1.0, help="part of the drawn tests to keep (0 to 1)")
    parser.add_argument("--configs", default=DEFAULT_NPUS, help="NPUs, separated by commas, or all")
    parser.add_argument("--lists", type=Path, default=sets.LISTS, help="folder of quick.json and full.json")
    parser.add_argument(
        "--out", type=Path, help="folder of tests and verdicts (default: out/conformance/...)"
    )
    parser.add_argument("--only", default="", help="regular expression that a test's name must contain")
    parser.add_argument("--json", type=Path, help="write the summary here")
    return parser


def _entries(options: argparse.Namespace, maker: sets.Maker) -> Iterable[sets.Entry]:
    if options.set is None:
        return maker.drawn(options.share)
    return sets.published(options.lists / f"{options.set}.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    options = _parser().parse_args(arguments)
    os.environ["ARMDEPLOY_CACHE"] = "off"  # what an older decoder left on disk proves nothing
    npus = list(CONFIGS) if options.configs == "all" else options.configs.split(",")
    npus = [npu_config(name).name for name in npus]
    if options.set and not (options.lists / f"{options.set}.json").exists():
        print(
            f"conformance: no {options.set}.json in {options.lists}; use --lists or --seed", file=sys.stderr
        )
        return 3
    name = options.set or f"seed-{options.seed}"
    # Published sets share their folder of tests: quick is a part of full.
    folder = options.out or Path("out", "conformance", "published" if options.set else name)
    maker = sets.Maker(folder / "tests", sets.PUBLISHED_SEED if options.set else options.seed)
    wanted = re.compile(options.only)
    entries = (entry for entry in _entries(options, maker) if wanted.search(entry.test))
    results = run(entries, maker, npus, folder, lambda text: print(text, file=sys.stderr, flush=True))
    return _report(results, npus, options.json)


def _report(results: list[tuple[sets.Entry, Verdict]], npus: Sequence[str], path: Path | None) -> int:
    document = summary(results, npus)
    if path:
        path.write_text(json.dumps(document, indent=1) + "\n")
    print(table(results, npus))
    print("\nper NPU: accepted / exact / known difference / different or error / not modelled")
    for npu in npus:
        print(npu, document["totals"][npu])  # type: ignore[index]
    for row in document["unexpected"]:  # type: ignore[attr-defined]
        print("unlike the list:", row["test"], row["npu"], row["what"])
    good = all(is_good(verdict) for _, verdict in results) and not document["unexpected"]
    return 0 if good else 5


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Sets of tests on disk: published lists by name, or drawn from any seed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from tests.conformance import compose
from tests.conformance.opgen import ByName, Generator, Recipe
from tests.conformance.recipes import PUBLISHED_SEED, RECIPES, SET_SEEDS

LISTS = Path(__file__).parents[3] / "shared" / "data" / "tosa"
"""Where the published lists are, beside the repository."""
_FAMILIES = ("u55", "u65", "u85")


@dataclass(frozen=True)
class Entry:
    """One test to run.

    Attributes:
        test: set, operator folder and name, joined by "/".
        op: row of the table it counts in.
        expected: family ("u55", "u65", "u85") to "accept", "reject" or a class of known differences; empty
            for drawn sets.
    """

    test: str
    op: str
    expected: Mapping[str, str] = field(default_factory=dict)


def published(path: Path) -> list[Entry]:
    """Tests of a published list."""
    rows = json.loads(path.read_text())
    return [Entry(row["dir"], row["op"], {key: row[key] for key in _FAMILIES}) for row in rows]


def plain_operator(op: str) -> str:
    """Operator without the kernel that the generator adds: conv2d_3x3 -> conv2d."""
    head, _, tail = op.rpartition("_")
    return head if head and tail.replace("x", "").isdigit() else op


class Maker:
    """Makes tests of one seed below `root`, each in the folder that its name gives."""

    def __init__(self, root: Path, seed: int = PUBLISHED_SEED):
        self._root = root
        self._seeds = {group: seed + offset for group, offset in SET_SEEDS.items()}

    @cached_property
    def _generator(self) -> Generator:
        return Generator()

    @cached_property
    def _names(self) -> ByName:
        return ByName(self._generator, RECIPES, self._seeds)

    def folder(self, test: str) -> Path | None:
        """Folder of the test called so, made if it is not there; None if no recipe makes it."""
        target = self._root / test
        if (target / "desc.json").exists():
            return target
        group, op, name = test.split("/")
        if group == "FU2":
            return self._composite(target, op, name)
        found = self._names.find(group, op, name)
        if found is None:
            return None
        recipe, chosen = found
        return self._generator.write(recipe, self._seeds[group], chosen, self._root / group)

    def _composite(self, target: Path, op: str, name: str) -> Path | None:
        plain, _, variant = name.removeprefix("fused_").rpartition("_")
        source = self.folder(f"A/{op.removeprefix('fused_')}/{plain}")
        if source is None:
            return None
        return compose.compose(source, target, self._seeds["FU2"], int(variant))

    def drawn(self, share: float = 1.0) -> Iterator[Entry]:
        """Tests that the recipes choose with this seed; `share` keeps that part of them, by name."""
        for recipe in RECIPES:
            for chosen in self._generator.chosen(recipe, self._seeds[recipe.group]):
                entry = Entry(f"{recipe.group}/{recipe.op}/{chosen}", plain_operator(recipe.op))
                if not _kept(entry.test, share):
                    continue
                self._write(recipe, chosen, entry)
                yield entry
                yield from self._composites(entry)

    def _write(self, recipe: Recipe, chosen, entry: Entry) -> None:
        if not (self._root / entry.test / "desc.json").exists():
            seed = self._seeds[recipe.group]
            self._generator.write(recipe, seed, chosen, self._root / recipe.group)

    def _composites(self, entry: Entry) -> Iterator[Entry]:
        group, op, name = entry.test.split("/")
        if group != "A" or entry.op not in (*compose.ACCUMULATING, *compose.ELEMENTWISE):
            return
        for variant in range(compose.VARIANTS):
            composite = Entry(f"FU2/fused_{op}/fused_{name}_{variant}", f"fused_{entry.op}")
            if self.folder(composite.test) is not None:
                yield composite


def _kept(test: str, share: float) -> bool:
    return np.random.default_rng(zlib.crc32(test.encode())).random() < share

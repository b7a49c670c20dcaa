# SPDX-License-Identifier: Apache-2.0
"""tosa-tools' own test generator, called in process: operator tests by recipe and seed, or by name.

The generator draws a test's shape from (seed, operator, rank, type), its arguments from (seed, operator,
shape, type) and its data from (seed, test name), so a recipe and a seed say all there is to know.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from unittest import mock

import tosa_reference_model
from generator import tosa_test_select as selection
from generator.tosa_random_gen import TosaRandomGenerator
from generator.tosa_test_gen import TosaTestGen
from generator.tosa_verif_build_tests import _get_tosa_version, parseArgs
from schemavalidation.schemavalidation import TestDescSchemaValidator

_LIBRARY = Path(tosa_reference_model.__file__).parent / "libtosa_reference_generate_lib.so"
_KERNELS = "1,1 2,2 3,1 3,3 5,3 9,2 7,7 11,11 1,20 20,3 3,2 4,4 1,1,1 2,2,2 3,3,3".split()
_FIXED = ["--generate-lib-path", str(_LIBRARY), "--conv-kernel", *_KERNELS]
_EXTENSIONS = "int16 int4 doubleround inexactround controlflow shape".split()
_FIXED += ["--profile", "tosa-pro-int", "--extension", *(f"tosa-ext-{name}" for name in _EXTENSIONS)]
_VERSION, _LATER_VERSION = "1.0", "1.1.0-draft"
_LATER = re.compile("dim$|const_shape$|.*_adaptive$")


@dataclass(frozen=True)
class Recipe:
    """One call of the generator.

    Attributes:
        group: set of tests it belongs to.
        op: operator as the generator names its folder, kernel included (conv2d_3x3).
        seed: added to the set's seed.
        dims: smallest and largest-plus-one extent of an axis.
        ranks: None for the generator's own choice.
        shape: of the first operand, given instead of drawn.
        options: the generator's settings for windows: (name, value).
        types: element types as they stand in test names; None for all integer types.
        per_type: tests to choose of each value of `permutes`.
        special: also all tests with special values.
    """

    group: str
    op: str
    seed: int
    dims: tuple[int, int] = (1, 16)
    ranks: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None
    options: tuple[tuple[str, int], ...] = ()
    types: tuple[str, ...] | None = None
    permutes: tuple[str, ...] = ("type",)
    per_type: int = 2
    special: bool = False


WINDOW_OPTIONS: dict[str, int] = {
    "max_conv_padding": 2,
    "max_conv_stride": 2,
    "max_conv_dilation": 2,
    "max_pooling_padding": 1,
    "max_pooling_stride": 2,
    "max_pooling_kernel": 3,
    "oversize": False,
    "num_rand_permutations": 6,
    "max_resize_output_dim": 48,
}
_FLOAT = re.compile(r"(^|x)(fp|f\d|bf|mx|i64)")


class Generator:
    """Makes tests into folders `<root>/<operator>/<test>`."""

    def tests(self, recipe: Recipe, seed: int) -> list[selection.Test]:
        """All tests that the recipe's call makes with this seed of the set, none chosen yet."""
        generator = self._prepared(recipe, seed)
        if recipe.op not in generator.TOSA_OP_LIST:
            raise KeyError(f"the generator knows no operator {recipe.op}")
        shapes = [] if recipe.shape is None else [list(recipe.shape)]
        types = [
            kind
            for kind in generator.TOSA_OP_LIST[recipe.op]["types"]
            if _wanted(recipe, generator.typeStr(kind))
        ]
        return [
            selection.Test(generator.getOperatorNameStr(op), name, kind, error, shape, arguments, op)
            for op, name, kind, error, shape, arguments in self._listed(generator, recipe, shapes, types)
        ]

    def _listed(self, generator: TosaTestGen, recipe: Recipe, shapes: list, types: list) -> list:
        # The list of types belongs to the operator; the generator's own filter knows only single types.
        entry = generator.TOSA_OP_LIST[recipe.op]
        every, entry["types"] = entry["types"], types
        # Listing takes special values off an operator once they are used.
        data = dict(entry.get("data_gen", {}))
        try:
            with _plainly():
                return generator.genOpTestList(recipe.op, shapes, recipe.ranks, None, "positive")
        finally:
            entry["types"] = every
            if data:
                entry["data_gen"] = data

    def chosen(self, recipe: Recipe, seed: int) -> list[selection.Test]:
        """The tests that the generator's selection would take, in the order of their names."""
        criteria = {"permutes": list(recipe.permutes), "maximum": recipe.per_type}
        entry = {"selection": {"default": criteria}}
        tests = self.tests(recipe, seed)
        listed = selection.TestList({test.opName: entry for test in tests} | {recipe.op: entry})
        for test in tests:
            listed.add(test)
        generator = self._prepared(recipe, seed)
        rng = TosaRandomGenerator(seed + recipe.seed, generator.random_dtype_range)
        return listed.select(rng=rng, profiles_chosen=None, extensions_chosen=None)

    def write(self, recipe: Recipe, seed: int, test: selection.Test, root: Path) -> Path:
        """Make one test; its folder."""
        generator = self._prepared(recipe, seed)
        generator.basePath = str(root)
        with _plainly():
            done = generator.serializeTest(
                test.testOpName, str(test), test.dtype, test.error, test.shapeList, test.argsDict
            )
        if not done:
            raise RuntimeError(f"the generator did not make {test}")
        return root / test.testOpName / str(test)

    def _prepared(self, recipe: Recipe, seed: int) -> TosaTestGen:
        generator = self._later if _LATER.match(recipe.op) else self._generator
        generator.random_seed = generator.args.random_seed = seed + recipe.seed
        generator.args.tensor_shape_range = recipe.dims
        generator.args.target_shapes = [list(recipe.shape)] if recipe.shape else None
        shape_type = next(iter(generator.random_dtype_range))
        generator.random_dtype_range[shape_type] = recipe.dims
        generator.args.no_special_tests = not recipe.special
        for name, value in (WINDOW_OPTIONS | dict(recipe.options)).items():
            setattr(generator.args, name, value)
        return generator

    @cached_property
    def _generator(self) -> TosaTestGen:
        return _make(_VERSION)

    @cached_property
    def _later(self) -> TosaTestGen:
        return _make(_LATER_VERSION)


@contextlib.contextmanager
def _plainly() -> Iterator[None]:
    """Without messages, and without checking descriptions against their schema, which takes half the time."""
    unchecked = mock.patch.object(TestDescSchemaValidator, "validate_config", lambda *_, **__: None)
    with contextlib.redirect_stdout(io.StringIO()), unchecked:
        yield


def _make(version: str) -> TosaTestGen:
    arguments = parseArgs([*_FIXED, "--tosa-version", version])
    return TosaTestGen(arguments, _get_tosa_version(version))


def _wanted(recipe: Recipe, kind: str) -> bool:
    return not _FLOAT.search(kind) if recipe.types is None else kind in recipe.types


class ByName:
    """Finds the recipe that makes a test of a given name."""

    def __init__(self, generator: Generator, recipes: Iterable[Recipe], seeds: Mapping[str, int]):
        """`seeds`: of each group."""
        self._generator = generator
        self._recipes = tuple(recipes)
        self._seeds = seeds
        self._listed: dict[Recipe, dict[str, selection.Test]] = {}

    def find(self, group: str, op: str, name: str) -> tuple[Recipe, selection.Test] | None:
        """The recipe and its test, None if no recipe makes it, even given the test's own shape.

        A recipe that draws the shape gives the published test; given the shape instead, the test has its name
        and arguments but may differ in what the name does not say.
        """
        for recipe in self._narrowed(group, op, name):
            test = self._tests(recipe).get(name)
            if test is not None:
                return recipe, test
        return None

    def _narrowed(self, group: str, op: str, name: str) -> Iterator[Recipe]:
        own = [recipe for recipe in self._recipes if (recipe.group, recipe.op) == (group, op)]
        match = re.match(re.escape(op) + r"_(\d+(?:x\d+)*)_", name)
        if match is None:
            return
        shape = tuple(map(int, match[1].split("x")))
        rank = 0 if shape == (0,) else len(shape)
        yield from (replace(recipe, ranks=(rank,)) for recipe in own if recipe.shape is None)
        yield from own
        for options in ((), *_WINDOWS):
            yield from (
                replace(recipe, shape=shape if rank else (), ranks=None, options=(*recipe.options, *options))
                for recipe in own[:1]
            )

    def _tests(self, recipe: Recipe) -> dict[str, selection.Test]:
        if recipe not in self._listed:
            tests = self._generator.tests(recipe, self._seeds[recipe.group])
            self._listed[recipe] = {str(test): test for test in tests}
        return self._listed[recipe]


# The generator thins out its combinations of window settings; other limits leave others.
_WINDOWS = tuple(
    (("max_conv_padding", pad), ("max_conv_stride", stride), ("oversize", big))
    for pad in (1, 0)
    for stride in (2, 3, 1)
    for big in (False, True)
) + tuple(
    (("max_pooling_kernel", kernel), ("max_pooling_stride", stride), ("oversize", big))
    for kernel in range(9, 2, -1)
    for stride in (4, 3, 2)
    for big in (False, True)
)

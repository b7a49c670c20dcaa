# SPDX-License-Identifier: Apache-2.0
"""The sets of operator tests: which generator calls they consist of.

plain    every operator of the integer profile, ranks up to 4, several kernels and shapes
extra    ranks 5 and 6, large tensors, deep and wide ones, int4 weights, 48-bit data, control flow, batches
full     small tensors with special values: both ends of the range, zero, one, minus one
fused    composites on the plain tests, see tests.conformance.compose
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tests.conformance.opgen import Recipe

# Added to a run's seed, set by set.
SET_SEEDS: Mapping[str, int] = MappingProxyType({"A": 0, "X": 4000, "F": 5000, "FU2": 1000})
PUBLISHED_SEED = 1000
"""The seed that the published lists of tests (quick.json, full.json) were drawn with."""

_CONV = (("max_conv_padding", 2), ("max_conv_stride", 2), ("max_conv_dilation", 2))
_CONV1 = (("max_conv_padding", 1), ("max_conv_stride", 2), ("max_conv_dilation", 2))
_SPECIAL_RESIZE = (("num_rand_permutations", 15), ("max_resize_output_dim", 100))
_OVERSIZE = (("max_conv_padding", 1), ("max_conv_stride", 2), ("max_conv_dilation", 1), ("oversize", True))
_POOL = (("max_pooling_padding", 2), ("max_pooling_stride", 3), ("max_pooling_kernel", 4))
_SMALL_POOL = (("max_pooling_padding", 1), ("max_pooling_stride", 2), ("max_pooling_kernel", 3))
_WIDE_POOL = (("max_pooling_padding", 1), ("max_pooling_stride", 4), ("max_pooling_kernel", 9))
_BIG_POOL = (("max_pooling_padding", 0), ("max_pooling_stride", 2), ("max_pooling_kernel", 10))
_RESIZE = (("num_rand_permutations", 12), ("max_resize_output_dim", 48))
_BIG_RESIZE = (("num_rand_permutations", 20), ("max_resize_output_dim", 100))
_KERNELS_2D = ("1x1", "2x2", "3x3", "3x1", "5x3", "9x2")

_SMALL = (1, 14)
# Operators one after the other: the place in the list is the recipe's seed.
_PLAIN = (
    *(("argmax", (1, 24)), ("add", (1, 16)), ("sub", (1, 16)), ("maximum", (1, 16)), ("minimum", (1, 16))),
    *(("intdiv", (1, 16)), ("greater", (1, 16)), ("greater_equal", (1, 16)), ("equal", (1, 16))),
    *(("clz", (1, 16)), ("abs", (1, 16)), ("mul", (1, 16)), ("arithmetic_right_shift", _SMALL)),
    *(("logical_left_shift", _SMALL), ("logical_right_shift", _SMALL), ("bitwise_and", _SMALL)),
    *(("bitwise_or", _SMALL), ("bitwise_xor", _SMALL), ("bitwise_not", _SMALL), ("negate", _SMALL)),
    *(("select", _SMALL), ("clamp", _SMALL), ("table", _SMALL), ("identity", _SMALL)),
    *(("reverse", _SMALL), ("concat", _SMALL), ("reshape", _SMALL), ("slice", _SMALL), ("tile", _SMALL)),
    *(("transpose", _SMALL), ("reduce_max", _SMALL), ("reduce_min", _SMALL), ("logical_and", _SMALL)),
    *(("logical_or", _SMALL), ("logical_xor", _SMALL), ("logical_not", _SMALL), ("reduce_all", _SMALL)),
    *(("reduce_any", _SMALL), ("reduce_sum", _SMALL), ("pad", (1, 12))),
)
_DEEP_RANKS = "add sub mul maximum equal select bitwise_and arithmetic_right_shift abs negate clamp rescale"
_DEEP_RANKS += " cast table concat pad reverse slice tile transpose reduce_max reduce_sum reshape identity"
_DEEP_RANKS += " argmax logical_and"
_LARGE = "add mul rescale reduce_max reduce_sum argmax transpose concat pad reverse table select clamp"
_SPECIAL = "add sub mul abs negate clamp rescale cast maximum minimum intdiv arithmetic_right_shift"
_SPECIAL += " logical_left_shift logical_right_shift table reduce_sum argmax max_pool2d avg_pool2d matmul"
_SPECIAL += " conv2d_3x3 depthwise_conv2d_3x3 equal greater bitwise_xor select resize transpose_conv2d_3x3"

_PERMUTES = {
    "cast": ("type", "out_type"),
    "rescale": ("type", "output_dtype", "rounding_mode"),
    "resize": ("type", "mode"),
    "arithmetic_right_shift": ("type", "rank", "round"),
}
_BY_RANK = frozenset(
    "concat identity pad reshape reverse select slice tile transpose reduce_max reduce_min argmax".split()
)


def _permutes(op: str) -> tuple[str, ...]:
    return _PERMUTES.get(op, ("type", "rank") if op in _BY_RANK else ("type",))


def _plain() -> Iterator[Recipe]:
    for place, kernel in enumerate(_KERNELS_2D):
        yield Recipe("A", f"conv2d_{kernel}", 2 * place, (2, 24), options=_CONV)
        yield Recipe("A", f"depthwise_conv2d_{kernel}", 2 * place + 1, (2, 12), options=_CONV)
    for place, kernel in enumerate(("1x1", "2x2", "3x3", "3x2", "4x4")):
        yield Recipe("A", f"transpose_conv2d_{kernel}", 12 + place, (2, 10), options=_CONV1)
    for place, kernel in enumerate(("1x1x1", "2x2x2", "3x3x3")):
        yield Recipe("A", f"conv3d_{kernel}", 17 + place, (2, 8), options=_CONV1)
    for place, largest in enumerate((9, 20, 30, 40, 70)):
        yield Recipe("A", "matmul", 20 + place, (1, largest), per_type=1)
    yield Recipe("A", "avg_pool2d", 25, (4, 20), options=_POOL)
    yield Recipe("A", "avg_pool2d", 26, (10, 24), options=_BIG_POOL)
    yield Recipe("A", "max_pool2d", 27, (4, 20), options=_POOL)
    for place, (op, dims) in enumerate(_PLAIN):
        yield Recipe("A", op, 28 + place, dims, (0, 1, 2, 3, 4), permutes=_permutes(op))
    for place, largest in enumerate((8, 12, 16, 24)):
        yield Recipe("A", "gather", 68 + 2 * place, (1, largest), per_type=1)
        yield Recipe("A", "scatter", 69 + 2 * place, (1, largest), per_type=1)
    yield Recipe("A", "resize", 76, (1, 12), options=_RESIZE, permutes=_permutes("resize"), per_type=6)
    yield Recipe("A", "cast", 77, (1, 16), (1, 2, 3, 4), permutes=_permutes("cast"))
    yield Recipe("A", "rescale", 78, (1, 16), (1, 2, 3, 4), permutes=_permutes("rescale"))
    yield Recipe("A", "const", 79, (1, 8), per_type=1)


_DEEP, _IMAGE, _BATCH = (1, 16, 16, 70), (1, 40, 36, 24), (3, 8, 8, 5)


def _extra() -> Iterator[Recipe]:
    for place, op in enumerate(_DEEP_RANKS.split()):
        yield Recipe("X", op, place, (1, 5), (5, 6))
    for place, op in enumerate(_LARGE.split()):
        yield Recipe("X", op, 54 + place, (20, 48), (3,), per_type=1)
    for op in ("conv2d_1x1", "conv2d_3x3", "depthwise_conv2d_3x3", "depthwise_conv2d_7x7"):
        # Here the extents are the output's depth: several blocks of it.
        for shape in (_DEEP, _IMAGE, _BATCH):
            yield Recipe("X", op, 30, (33, 80), shape=shape, options=_CONV, per_type=1)
        if op != "depthwise_conv2d_7x7":
            yield Recipe("X", op, 77, (2, 8), options=_CONV1, types=("i8xi4",), per_type=1)
    long, wide = (1, 40, 36, 4), (("max_conv_stride", 3), ("max_conv_dilation", 2))
    yield Recipe("X", "conv2d_1x20", 31, shape=long, options=_OVERSIZE, per_type=1)
    yield Recipe("X", "conv2d_20x3", 31, shape=long, options=(("max_conv_padding", 1), *wide), per_type=1)
    yield Recipe("X", "conv3d_2x2x2", 79, (2, 8), options=_CONV1, types=("i8xi4",), per_type=1)
    yield Recipe("X", "transpose_conv2d_3x3", 77, (2, 8), options=_CONV1, types=("i8xi4",), per_type=1)
    for op, shape in (("avg_pool2d", _IMAGE), ("avg_pool2d", (2, 17, 15, 5)), ("max_pool2d", _IMAGE)):
        yield Recipe("X", op, 32, shape=shape, options=_WIDE_POOL)
    yield from _long_axes()
    yield Recipe("X", "resize", 75, shape=(1, 10, 17, 17), options=_BIG_RESIZE, per_type=4)
    yield Recipe("X", "resize", 75, shape=(1, 19, 15, 6), options=_BIG_RESIZE, per_type=4)
    yield Recipe("X", "rescale", 88, (1, 16), types=("i48",), permutes=_permutes("rescale"), per_type=1)
    yield Recipe("X", "while_loop", 91, (1, 8), per_type=1)
    for place, op in enumerate(("avg_pool2d_adaptive", "max_pool2d_adaptive", "dim", "const_shape")):
        yield Recipe("X", op, 92 + place, (1, 16), options=_SMALL_POOL)


def _long_axes() -> Iterator[Recipe]:
    """Axes longer than any block, and reductions over them."""
    for op in ("reduce_max", "reduce_sum", "argmax"):
        yield Recipe("X", op, 80, shape=(1, 9, 1100))
    yield Recipe("X", "argmax", 81, shape=(3, 5, 70))
    yield Recipe("X", "reduce_sum", 81, shape=(2, 20000))


def _special() -> Iterator[Recipe]:
    for place, op in enumerate(_SPECIAL.split()):
        dims = (3, 12) if "conv" in op else (2, 8)
        ranks = None if "conv" in op or "2d" in op else (1, 2, 3, 4)
        options = _SPECIAL_RESIZE if op == "resize" else _CONV1
        yield Recipe("F", op, place, dims, ranks, options=options, per_type=1, special=True)


RECIPES: tuple[Recipe, ...] = (*_plain(), *_extra(), *_special())

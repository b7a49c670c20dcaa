# SPDX-License-Identifier: Apache-2.0
"""What compilers seldom or never emit, by hand-written streams against arithmetic done element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest
from program import Program

from npu import isa, stream
from npu.config import Family
from npu.errors import NotModelled
from npu.guesses import Guess
from npu.isa import ElementwiseMode as Mode
from npu.isa import PoolMode
from npu.machine import Npu, RunResult
from npu.memory import ArrayMemory

SOURCE, SECOND, TARGET = 0x1000, 0x8000, 0x4000
RNG = np.random.default_rng(11)
INT8 = RNG.integers(-128, 128, (5, 4, 3)).astype(np.int8)


def unscaled(program: Program) -> None:
    """Neither scaling nor clipping of a U85 result."""
    program("OFM_SCALE", scale=1, shift=0)
    program("ACTIVATION", function=isa.Activation85.NONE, clip_off=1)


def windowed(program: Program, ifm: np.ndarray, ofm_shape: tuple[int, int, int], dtype: str) -> None:
    program.put(SOURCE, ifm)
    program.feature_map("IFM", SOURCE, ifm.shape, ifm.dtype.str)
    program("IFM_DEPTH_M1", ifm.shape[2] - 1)
    program.feature_map("OFM", TARGET, ofm_shape, dtype, scale_mode=isa.ScaleMode.GLOBAL)


# --- pools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [PoolMode.ARGMAX_X, PoolMode.ARGMAX_Y], ids=lambda mode: mode.name)
def test_argmax_takes_the_first_of_equal_ones(mode: PoolMode) -> None:
    ifm = RNG.integers(-2, 3, (5, 4, 3)).astype(np.int8)
    axis = 1 if mode is PoolMode.ARGMAX_X else 0
    want = ifm.argmax(axis=axis)
    shape = (5, 1, 3) if axis else (1, 4, 3)
    program = Program(Family.U85)
    windowed(program, ifm, shape, "<i4")
    program("KERNEL_WIDTH_M1" if axis else "KERNEL_HEIGHT_M1", ifm.shape[axis] - 1)
    program("ACTIVATION", function=isa.Activation85.NONE, clip_off=1)
    program("OFM_SCALE", scale=1, shift=16, rounding=isa.Rounding.TRUNCATE_TO_LOWER)
    program("OP_POOL", mode)
    program.run()
    np.testing.assert_array_equal(program.get(TARGET, shape, "<i4"), want.reshape(shape))


@pytest.mark.parametrize("upscale", [isa.Upscale.ZEROS, isa.Upscale.NEAREST], ids=lambda mode: mode.name)
def test_upscaled_input(upscale: isa.Upscale) -> None:
    """A 1x1 pool shows the upscaled map; the elements put in between have the zero point's value."""
    program = Program(Family.U85)
    shape = (10, 8, 3)
    windowed(program, INT8, shape, "i1")
    program("IFM_UPSCALE", mode=upscale)
    program("IFM_ZERO_POINT", -7 & 0xFFFF)
    program("OFM_ZERO_POINT", -7 & 0xFFFF)
    unscaled(program)
    program("OP_POOL", PoolMode.SUM)
    program.run()
    want = INT8.repeat(2, axis=0).repeat(2, axis=1)
    if upscale is isa.Upscale.ZEROS:
        want = np.full(shape, -7, np.int8)
        want[::2, ::2] = INT8
    np.testing.assert_array_equal(program.get(TARGET, shape, "i1"), want)


# --- resize -------------------------------------------------------------------------------------------------


def resized(mode: isa.ResizeMode, strict: bool = False) -> tuple[np.ndarray, RunResult]:
    """Twice as high, three times as wide, with the steps and offsets of half-pixel centres."""
    program = Program(Family.U85)
    shape = (10, 12, 3)
    windowed(program, INT8, shape, "i1")
    program("KERNEL_HEIGHT_M1", INT8.shape[0] - 1)
    program("KERNEL_WIDTH_M1", INT8.shape[1] - 1)
    for axis, factor in (("Y", 2), ("X", 3)):
        program(f"RESIZE_{axis}_SCALE_N_M1", 2 * factor - 1)
        program(f"RESIZE_{axis}_OFFSET", 1 - factor)
        program(f"RESIZE_{axis}", one_step_mod=2, one_step_int=0)
    program("OFM_SCALE", scale=1, shift=16, rounding=isa.Rounding.SYMMETRIC)
    program("ACTIVATION", function=isa.Activation85.NONE, clip_off=1)
    program("OP_RESIZE", mode)
    program("OP_STOP", 0xFFFF)
    memory = ArrayMemory({1: program.data})
    result = Npu(program.config, strict=strict).run_commands(stream.encode_all(program.commands), memory)
    return program.get(TARGET, shape, "i1"), result


def position(index: int, factor: int) -> float:
    return (1 - factor + 2 * index) / (2 * factor)


@pytest.mark.parametrize("mode", [isa.ResizeMode.NEAREST, isa.ResizeMode.REPLICATE], ids=lambda m: m.name)
def test_resize_takes_one_element(mode: isa.ResizeMode) -> None:
    got, _ = resized(mode)
    half = 0.5 if mode is isa.ResizeMode.NEAREST else 0.0
    rows = [min(max(math.floor(position(y, 2) + half), 0), 4) for y in range(10)]
    columns = [min(max(math.floor(position(x, 3) + half), 0), 3) for x in range(12)]
    np.testing.assert_array_equal(got, INT8[rows][:, columns])


def test_replicate_is_a_guess() -> None:
    assert resized(isa.ResizeMode.REPLICATE)[1].guesses == {Guess.RESIZE_REPLICATE}
    assert resized(isa.ResizeMode.NEAREST, strict=True)[1].guesses == frozenset()
    with pytest.raises(NotModelled, match="replicate mode"):
        resized(isa.ResizeMode.REPLICATE, strict=True)


# --- elementwise --------------------------------------------------------------------------------------------


def scaled(value: int, multiplier: int, shift: int, d: int | None = None) -> int:
    """Rounded half up, or doubly with parameter d."""
    if shift == 0:
        return value * multiplier
    term = 1 << (shift - 1)
    if d is not None and shift > 31 - d:
        term += (1 if value >= 0 else -1) << (30 - d)
    return value * multiplier + term >> shift


def test_leaky_relu_scales_each_side_on_u85() -> None:
    program = Program(Family.U85)
    windowed(program, INT8, INT8.shape, "i1")
    unscaled(program)
    program("IFM_SCALE", scale=3, shift=2, rounding=isa.InputRounding.NATURAL)
    program("IFM2_SCALE", scale=5, shift=6, rounding=isa.InputRounding.NATURAL)
    program("OP_ELEMENTWISE", Mode.LRELU)
    program.run()
    want = [scaled(v, 3, 2) if v >= 0 else scaled(v, 5, 6) for v in INT8.ravel().tolist()]
    assert program.get(TARGET, INT8.shape, "i1").ravel().tolist() == want


@pytest.mark.parametrize("mode", [isa.OperandScale.OPA_32, isa.OperandScale.OPB_32], ids=lambda m: m.name)
@pytest.mark.parametrize("dtype", ["i1", "<i2"])
def test_scaled_add_on_u55(mode: isa.OperandScale, dtype: str) -> None:
    """One operand by 32 bits with double rounding (d = 20 or 15), the other shifted left by 19 or 14.

    The sum is stored as it is, so that the last bit of the first operand shows.
    """
    bits, d, shift = (19, 20, 12) if dtype == "i1" else (14, 15, 17)
    limit = 1 << (8 * np.dtype(dtype).itemsize - 1)
    a, b = (RNG.integers(-limit, limit, (2, 40, 16)).astype(dtype) for _ in range(2))
    program = Program(Family.U55)
    for name, offset, array in (("IFM", SOURCE, a), ("IFM2", SECOND, b)):
        program.put(offset, array)
        extra = {"scale_mode": mode, "rounding": isa.Round5x.DOUBLE} if name == "IFM" else {}
        program.feature_map(name, offset, array.shape, dtype, **extra)
    program.feature_map("OFM", TARGET, a.shape, "<i4", scale_mode=isa.ScaleMode.PER_CHANNEL)
    program("OPA_SCALE", scale=0x5A827999, shift=shift)
    program("OP_ELEMENTWISE", Mode.ADD)
    program.run()
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    swapped = mode is isa.OperandScale.OPB_32
    ordered = [(y, x) if swapped else (x, y) for x, y in pairs]
    want = [scaled(one, 0x5A827999, shift, d) + (other << bits) for one, other in ordered]
    assert program.get(TARGET, a.shape, "<i4").ravel().tolist() == want


def test_exchanged_operands_are_exchanged_before_scaling_on_u55() -> None:
    """IFM2 is then the first operand, with its 16-bit scale OPA, and the one subtracted from."""
    a, b = (RNG.integers(-40, 40, (2, 3, 16)).astype("i1") for _ in range(2))
    program = Program(Family.U55)
    for name, offset, array in (("IFM", SOURCE, a), ("IFM2", SECOND, b)):
        program.put(offset, array)
        program.feature_map(name, offset, array.shape, "i1")
    program("IFM2_BROADCAST", reversed_operands=1)
    program.feature_map("OFM", TARGET, a.shape, "i1", scale_mode=isa.ScaleMode.GLOBAL)
    program("OPA_SCALE", scale=2, shift=0)
    program("OPB_SCALE", scale=1)
    program("OFM_SCALE", scale=1, shift=0)
    program("ACTIVATION_MIN", -128 & 0xFFFF)
    program("ACTIVATION_MAX", 127)
    program("OP_ELEMENTWISE", Mode.SUB)
    program.run()
    np.testing.assert_array_equal(program.get(TARGET, a.shape, "i1"), 2 * b - a)


def test_product_of_32_bits_takes_the_shift_alone() -> None:
    a, b = (RNG.integers(-30000, 30000, (2, 3, 5)).astype(np.int32) for _ in range(2))
    program = Program(Family.U85)
    for name, offset, array in (("IFM", SOURCE, a), ("IFM2", SECOND, b)):
        program.put(offset, array)
        program.feature_map(name, offset, array.shape, "<i4")
    program.feature_map("OFM", TARGET, a.shape, "<i4", scale_mode=isa.ScaleMode.GLOBAL)
    program("OFM_SCALE", scale=1 << 30, shift=7, rounding=isa.Rounding.NATURAL)
    program("ACTIVATION", function=isa.Activation85.NONE, clip_off=1)
    program("OP_ELEMENTWISE", Mode.MUL)
    result = program.run()
    want = [(x * y + 64) >> 7 for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
    assert program.get(TARGET, a.shape, "<i4").ravel().tolist() == want
    assert result.guesses == {Guess.MUL32_SHIFT_ONLY}


# --- tables and built-in functions --------------------------------------------------------------------------


def looked_up(function: isa.Activation85, ifm: np.ndarray, table: np.ndarray, dtype: str) -> np.ndarray:
    program = Program(Family.U85)
    program.put(SECOND, table)
    program("DMA0_SRC_REGION", region=1)
    program("DMA0_DST_REGION", region_mode=isa.RegionMode.INTERNAL)
    program("DMA0_SRC", SECOND)
    program("DMA0_LEN", table.nbytes)
    program("OP_DMA_START")
    windowed(program, ifm, ifm.shape, dtype)
    program("OFM_SCALE", scale=1, shift=0)
    program("ACTIVATION", function=function, clip_off=1)
    program("OP_POOL", PoolMode.SUM)
    program.run()
    return program.get(TARGET, ifm.shape, dtype)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        (isa.Activation85.LUT_S8_S8, "i1"),
        (isa.Activation85.LUT_S8_S16, "<i2"),
        (isa.Activation85.LUT_S8_S32, "<i4"),
    ],
)
def test_table_of_8_bits(function: isa.Activation85, dtype: str) -> None:
    info = np.iinfo(dtype)
    table = RNG.integers(info.min, info.max, 256).astype(dtype)
    got = looked_up(function, INT8, table, dtype)
    assert got.ravel().tolist() == [int(table[v + 128]) for v in INT8.ravel().tolist()]


@pytest.mark.parametrize(
    ("function", "dtype"), [(isa.Activation85.LUT_S16_S16, "<i2"), (isa.Activation85.LUT_S16_S32, "<i4")]
)
def test_table_of_16_bits_interpolates(function: isa.Activation85, dtype: str) -> None:
    table = RNG.integers(-100, 100, (512, 2)).astype("<i2")
    ifm = RNG.integers(-32768, 32768, (4, 5, 6)).astype("<i2")
    got = looked_up(function, ifm, table, dtype)
    want = []
    for value in ifm.ravel().tolist():
        base, slope = table[(value + 32768) >> 7].tolist()
        step = slope * (value & 127)
        want.append(base + ((step + 64) >> 7) if dtype == "<i2" else (base << 7) + step)
    assert got.ravel().tolist() == want


@pytest.mark.parametrize(
    ("function", "exact"),
    [(isa.Activation85.TANH, math.tanh), (isa.Activation85.SIGMOID, lambda x: 1 / (1 + math.exp(-x)))],
)
def test_built_in_functions_follow_the_curve(function: isa.Activation85, exact) -> None:
    """Units of 1/12288 in, 2^-15 out: within the interpolation's error of the curve everywhere."""
    ifm = np.arange(-32768, 32767, 40, dtype="<i2").reshape(1, -1, 1)
    program = Program(Family.U85)
    windowed(program, ifm, ifm.shape, "<i2")
    unscaled(program)
    program("ACTIVATION", function=function, clip_off=1)
    program("OP_POOL", PoolMode.SUM)
    result = program.run()
    got = program.get(TARGET, ifm.shape, "<i2").ravel() / 32768
    assert max(abs(g - exact(v / 12288)) for g, v in zip(got, ifm.ravel().tolist(), strict=True)) < 4e-4
    assert result.guesses == {Guess.SMOOTH_TABLE}


# --- control ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", Family)
def test_interrupt_and_counter_mask_do_not_end_a_stream(family: Family) -> None:
    program = Program(family)
    program("OP_PMU_MASK", 1)
    program("OP_IRQ", 0x0012)
    program("OP_PMU_MASK", 0)
    program("OP_STOP", 0x0100)
    program("OP_IRQ", 0x8000)
    result = Npu(program.config).run_commands(stream.encode_all(program.commands), ArrayMemory({}))
    assert (result.commands, result.irq_mask) == (4, 0x0112)


def test_average_is_a_guess() -> None:
    program = Program(Family.U85)
    windowed(program, INT8, (4, 3, 3), "i1")
    program("KERNEL_HEIGHT_M1", 1)
    program("KERNEL_WIDTH_M1", 1)
    unscaled(program)
    program("OP_POOL", PoolMode.AVERAGE)
    assert program.run().guesses == {Guess.AVERAGE_DIVISION}


def stacked_tiles(strict: bool) -> tuple[np.ndarray, RunResult]:
    """A map of five rows in three tiles of 2, 1 and 2 rows, copied."""
    program = Program(Family.U85)
    windowed(program, INT8, INT8.shape, "i1")
    program("IFM_PRECISION", signed=1, storage=isa.Storage.TILE_3X1)
    program("IFM_HEIGHT0_M1", 1)
    program("IFM_HEIGHT1_M1", 0)
    for tile, (row, place) in enumerate(((0, 0x1000), (2, 0x2000), (3, 0x3000))):
        program.put(place, INT8[row:])
        program(f"IFM_BASE{tile}", place)
    unscaled(program)
    program("OP_POOL", PoolMode.SUM)
    program("OP_STOP", 0xFFFF)
    memory = ArrayMemory({1: program.data})
    result = Npu(program.config, strict=strict).run_commands(stream.encode_all(program.commands), memory)
    return program.get(TARGET, INT8.shape, "i1"), result


def test_three_stacked_tiles_are_a_guess() -> None:
    got, result = stacked_tiles(strict=False)
    np.testing.assert_array_equal(got, INT8)
    assert result.guesses == {Guess.TILES_3X1}
    with pytest.raises(NotModelled, match="3x1 tiles"):
        stacked_tiles(strict=True)


@pytest.mark.parametrize("value", [0, 1])
def test_branch_on_the_last_result(value: int) -> None:
    """A value of one skips the second operation, which would overwrite the result."""
    program = Program(Family.U85)
    windowed(program, np.full((1, 1, 1), value, np.int8), (1, 1, 1), "i1")
    unscaled(program)
    program("OP_POOL", PoolMode.SUM)
    target = len(stream.encode_all(program.commands)) + 8 + 4 + 4
    program("OP_BRANCH", target=target, condition=1)
    program("OFM_ZERO_POINT", 77)
    program("OP_POOL", PoolMode.SUM)
    result = program.run()
    assert program.get(TARGET, (1,), "i1").tolist() == [1 if value else 77]
    assert result.guesses == {Guess.BRANCH_CONDITION}
    assert [op.mode for op in result.ops] == ["SUM"] * (1 if value else 2)

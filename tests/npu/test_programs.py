# SPDX-License-Identifier: Apache-2.0
"""Commands that the compilers at hand do not emit, and requests the machine must refuse."""

from __future__ import annotations

import numpy as np
import pytest
from program import Program

from npu import isa, stream
from npu.config import Family
from npu.errors import BusError, NotModelled, NpuError, StreamError
from npu.isa import ElementwiseMode as Mode
from npu.machine import Npu
from npu.memory import ArrayMemory

SOURCE, TARGET, INDEX = 0x1000, 0x4000, 0x8000
RNG = np.random.default_rng(7)
BYTES = RNG.integers(0, 256, 512, np.uint8)


# --- DMA ----------------------------------------------------------------------------------------------------


def dma(family: Family, length: int, **source: int) -> Program:
    program = Program(family)
    program.put(SOURCE, BYTES)
    program("DMA0_SRC_REGION", region=1, **source)
    program("DMA0_SRC", SOURCE)
    program("DMA0_DST", TARGET)
    program("DMA0_LEN", length)
    return program


@pytest.mark.parametrize("family", Family)
def test_dma_1d(family: Family) -> None:
    program = dma(family, 37)
    program("DMA0_DST_REGION", region=1)
    program("OP_DMA_START")
    record = program.run().ops[0]
    np.testing.assert_array_equal(program.get(TARGET, (37,), "u1"), BYTES[:37])
    assert not program.data[TARGET + 37]
    assert (record.bytes_read, record.bytes_written) == ({1: 37}, {1: 37})


def test_dma_3d_skips_in_the_destination_on_u65() -> None:
    program = dma(Family.U65, 5)
    program("DMA0_DST_REGION", region=1, stride_mode=isa.StrideMode.D3)
    program("DMA0_SIZE0", 3)
    program("DMA0_SIZE1", 2)
    program("DMA0_SKIP0", 2)
    program("DMA0_SKIP1", 10)
    program("OP_DMA_START")
    program.run()
    for plane in range(2):
        for row in range(3):
            start = TARGET + plane * (3 * 7 + 10) + row * 7
            want = BYTES[(plane * 3 + row) * 5 :][:5]
            np.testing.assert_array_equal(program.data[start : start + 5], want)


def test_dma_3d_strides_on_both_sides_on_u85() -> None:
    program = dma(Family.U85, 4, stride_mode=isa.StrideMode.D3)
    program("DMA0_DST_REGION", region=1)
    for name, value in {"SIZE0": 3, "SIZE1": 2, "SRC_STRIDE0": 8, "SRC_STRIDE1": 40}.items():
        program(f"DMA0_{name}", value)
    program("DMA0_DST_STRIDE0", 16)
    program("DMA0_DST_STRIDE1", 4)
    program("OP_DMA_START")
    program.run()
    for plane in range(2):
        for row in range(3):
            start = TARGET + plane * 4 + row * 16
            np.testing.assert_array_equal(program.data[start : start + 4], BYTES[plane * 40 + row * 8 :][:4])


@pytest.mark.parametrize("wide", [False, True], ids=["int32", "int64"])
@pytest.mark.parametrize("scatter", [False, True])
def test_indexed_dma(scatter: bool, wide: bool) -> None:
    indices = np.array([3, 0, 6, 3])
    program = Program(Family.U85)
    mode = isa.StrideMode.D3 if wide else isa.StrideMode.D2
    program.put(SOURCE, BYTES)
    program.put(INDEX, indices.astype("<i8" if wide else "<i4"))
    program("DMA0_SRC_REGION", region=1, stride_mode=mode, index_mode=int(not scatter))
    program("DMA0_DST_REGION", region=1, index_mode=int(scatter))
    program("DMA0_SRC", SOURCE)
    program("DMA0_DST", TARGET)
    program("DMA0_LEN", 6)
    program("DMA0_SIZE0", 1 if wide else 4)
    program("DMA0_SIZE1", 4 if wide else 1)
    program("DMA0_SRC_STRIDE0", 6)
    program("DMA0_DST_STRIDE0", 6)
    program("DMA0_SRC_STRIDE1", 6 * (wide and scatter))
    program("DMA0_DST_STRIDE1", 6 * (wide and not scatter))
    program("DMA0_IDX_REGION", 1)
    program("DMA0_IDX", INDEX)
    program("DMA0_IDX_MAX", 6)
    program("DMA0_IDX_SKIP1", 4 * wide)
    program("OP_DMA_START")
    program.run()
    rows, want = BYTES[:60].reshape(10, 6), np.zeros((7, 6), np.uint8)
    if scatter:
        for row, index in enumerate(indices):
            want[index] = rows[row]
    else:
        want[:4] = rows[indices]
    np.testing.assert_array_equal(program.get(TARGET, (7, 6), "u1"), want)


@pytest.mark.parametrize(
    ("registers", "error"),
    [
        ({"DMA0_LEN": 0}, StreamError),
        ({"DMA0_LEN": 1 << 39}, NotModelled),
        ({"DMA0_LEN": 1 << 17}, BusError),
        ({"DMA0_SRC": (1 << 40) - 8}, BusError),
        ({"DMA0_DST": 0xFFF0}, BusError),
    ],
)
def test_impossible_dma(registers: dict[str, int], error: type[NpuError]) -> None:
    program = dma(Family.U85, 64)
    program("DMA0_DST_REGION", region=1)
    for name, value in registers.items():
        program(name, value)
    program("OP_DMA_START")
    with pytest.raises(error) as caught:
        program.run()
    assert caught.value.opcode == "OP_DMA_START"
    assert caught.value.offset is not None


def test_table_memory_is_bounded() -> None:
    program = dma(Family.U85, 256)
    program("DMA0_DST_REGION", region=1, region_mode=isa.RegionMode.INTERNAL)
    program("DMA0_DST", 2048 - 255)
    program("OP_DMA_START")
    with pytest.raises(StreamError, match="table memory"):
        program.run()


# --- elementwise --------------------------------------------------------------------------------------------

INT32 = RNG.integers(-(1 << 31), 1 << 31, (2, 3, 5)).astype(np.int32)
EDGES = np.array(
    [0, 1, -1, 2, -(1 << 31), (1 << 31) - 1, 3, -3, 1 << 30, 7, -8, 16, 5, 100, -100] * 2, np.int32
)


def elementwise(mode: Mode, a: np.ndarray, b: np.ndarray | None, rounding: isa.Rounding) -> np.ndarray:
    """U85, no scaling, clip off."""
    program = Program(Family.U85)
    for name, offset, array in (("IFM", SOURCE, a), ("IFM2", INDEX, a if b is None else b)):
        program.put(offset, array)
        program.feature_map(name, offset, array.shape, array.dtype.str)
        program(f"{name}_SCALE", scale=1, shift=0)
    program.feature_map("OFM", TARGET, a.shape, a.dtype.str, scale_mode=isa.ScaleMode.GLOBAL)
    program("OFM_SCALE", scale=1, shift=0, rounding=rounding)
    program("ACTIVATION", function=isa.Activation85.NONE, clip_off=1)
    program("OP_ELEMENTWISE", mode)
    program.run()
    return program.get(TARGET, a.shape, a.dtype.str)


def wrapped(value: int, bits: int = 32) -> int:
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


AMOUNTS = np.resize(np.arange(32), INT32.shape).astype(np.int32)
UNSIGNED = 0xFFFFFFFF
BINARY = {
    Mode.SHL: (AMOUNTS, lambda a, b: wrapped(a << b)),
    Mode.LSR: (AMOUNTS, lambda a, b: wrapped((a & UNSIGNED) >> b)),
    Mode.DIV: (
        np.where(INT32 == 0, 1, INT32 // 1000 + 1),
        lambda a, b: int(abs(a) // abs(b)) * (1 if a * b >= 0 else -1),
    ),
    Mode.CMP_EQ: (INT32, lambda a, b: -(a == b)),
    Mode.CMP_NE: (INT32[::-1], lambda a, b: -(a != b)),
    Mode.CMP_GE: (INT32[::-1], lambda a, b: -(a >= b)),
    Mode.CMP_GT: (INT32[::-1], lambda a, b: -(a > b)),
    Mode.AND: (INT32[::-1], lambda a, b: a & b),
    Mode.OR: (INT32[::-1], lambda a, b: a | b),
    Mode.XOR: (INT32[::-1], lambda a, b: a ^ b),
    Mode.AND_NOT: (INT32[::-1], lambda a, b: a & ~b),
    Mode.ADD: (INT32[::-1], lambda a, b: wrapped(a + b)),
    Mode.MUL: (INT32[::-1], lambda a, b: wrapped(a * b)),
}


@pytest.mark.parametrize("mode", BINARY, ids=lambda mode: mode.name)
def test_binary_int32(mode: Mode) -> None:
    second, rule = BINARY[mode]
    second = np.ascontiguousarray(second).astype(np.int32)
    got = elementwise(mode, INT32, second, isa.Rounding.NATURAL)
    want = [int(rule(a, b)) for a, b in zip(INT32.ravel().tolist(), second.ravel().tolist(), strict=True)]
    assert got.ravel().tolist() == want


@pytest.mark.parametrize(
    ("rounding", "rule"),
    [
        (isa.Rounding.NATURAL, lambda a, s: a + (1 << s >> 1) >> s),
        (isa.Rounding.TRUNCATE_TO_LOWER, lambda a, s: a >> s),
        (isa.Rounding.TRUNCATE_TO_ZERO, lambda a, s: abs(a) >> s if a >= 0 else -(abs(a) >> s)),
    ],
)
def test_arithmetic_shift_right_rounds_as_told(rounding: isa.Rounding, rule) -> None:
    values = np.resize(EDGES, INT32.shape).astype(np.int32)
    got = elementwise(Mode.SHR, values, AMOUNTS, rounding)
    want = [rule(a, s) for a, s in zip(values.ravel().tolist(), AMOUNTS.ravel().tolist(), strict=True)]
    assert got.ravel().tolist() == want


def test_count_leading_zeros() -> None:
    values = EDGES.reshape(2, 3, 5)
    got = elementwise(Mode.CLZ, values, None, isa.Rounding.NATURAL)
    want = [32 - (value & UNSIGNED).bit_length() for value in values.ravel().tolist()]
    assert got.ravel().tolist() == want


def test_not_and_abs() -> None:
    np.testing.assert_array_equal(elementwise(Mode.NOT, INT32, None, isa.Rounding.NATURAL), ~INT32)
    np.testing.assert_array_equal(elementwise(Mode.ABS, INT32, None, isa.Rounding.NATURAL), np.abs(INT32))


@pytest.mark.parametrize(("mode", "second"), [(Mode.SHR, 32), (Mode.SHL, -1), (Mode.DIV, 0)])
def test_undefined_operands_are_refused(mode: Mode, second: int) -> None:
    with pytest.raises(NotModelled):
        elementwise(mode, INT32, np.full_like(INT32, second), isa.Rounding.NATURAL)


@pytest.mark.parametrize("clip_off", [0, 1])
def test_clip_or_wrap(clip_off: int) -> None:
    a = np.array([100, -100, 50], np.int8).reshape(1, 1, 3)
    program = Program(Family.U85)
    for name, offset in (("IFM", SOURCE), ("IFM2", INDEX)):
        program.put(offset, a)
        program.feature_map(name, offset, a.shape, "i1")
        program(f"{name}_SCALE", scale=1, shift=0)
    program.feature_map("OFM", TARGET, a.shape, "i1", scale_mode=isa.ScaleMode.GLOBAL)
    program("OFM_SCALE", scale=1, shift=0)
    program("ACTIVATION", function=isa.Activation85.NONE, clip_off=clip_off)
    program("ACTIVATION_MIN", -90 & 0xFFFF)
    program("ACTIVATION_MAX", 110)
    program("OP_ELEMENTWISE", Mode.ADD)
    program.run()
    assert program.get(TARGET, (3,), "i1").tolist() == ([-56, 56, 100] if clip_off else [110, -90, 100])


# --- refusals -----------------------------------------------------------------------------------------------


def refused(program: Program, error: type[NpuError], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        program.run()
    assert caught.value.offset is not None


def test_stream_without_stop() -> None:
    program = Program(Family.U55)
    program("IFM_REGION", 1)
    program.commands.append(program.commands[0])
    with pytest.raises(StreamError, match="without STOP"):
        Npu(program.config).run_commands(stream.encode_all(program.commands), ArrayMemory({}))


def test_endless_branch_is_stopped() -> None:
    program = Program(Family.U85)
    program("OP_BRANCH", target=0, condition=0)
    refused(program, NotModelled, "more than")


def test_branch_into_a_command() -> None:
    program = Program(Family.U85)
    program("OP_BRANCH", target=4, condition=0)
    refused(program, StreamError, "no command starts")


def test_reserved_codes() -> None:
    program = Program(Family.U85)
    program.feature_map("OFM", TARGET, (1, 1, 1), "i1", transpose=4)
    program.feature_map("IFM", SOURCE, (1, 1, 1), "i1")
    program("OP_ELEMENTWISE", Mode.ABS)
    refused(program, NotModelled, r"OFM_PRECISION.transpose = 4")


def test_reserved_mode() -> None:
    program = Program(Family.U85)
    program("OP_ELEMENTWISE", 63)
    refused(program, NotModelled, "mode 63")


@pytest.mark.parametrize("mode", [Mode.LSR, Mode.DIV, Mode.CMP_EQ, Mode.AND])
def test_modes_that_u55_lacks(mode: Mode) -> None:
    program = Program(Family.U55)
    program.feature_map("OFM", TARGET, (1, 1, 1), "i1")
    program.feature_map("IFM", SOURCE, (1, 1, 1), "i1")
    program.feature_map("IFM2", INDEX, (1, 1, 1), "i1")
    program("OP_ELEMENTWISE", mode)
    refused(program, NotModelled, f"{mode.name} on U55")


def test_reserved_bits() -> None:
    program = Program(Family.U85)
    program("IFM_REGION", 1)
    word = program.commands.pop()
    program.commands.append(stream.from_operand(word.spec, word.operand | 0x100))
    refused(program, NotModelled, "reserved bits 0x100")


def test_pool_without_source() -> None:
    program = Program(Family.U85)
    program.feature_map("OFM", TARGET, (1, 1, 1), "i1", scale_mode=isa.ScaleMode.GLOBAL)
    program("OP_POOL", isa.PoolMode.NONE)
    refused(program, NotModelled, "without accumulator input")


def test_accumulator_kept_by_nobody() -> None:
    program = Program(Family.U85)
    program.feature_map("OFM", TARGET, (1, 1, 1), "i1", scale_mode=isa.ScaleMode.GLOBAL)
    program.feature_map("IFM", SOURCE, (1, 1, 1), "i1")
    program("ACC_FORMAT", input=isa.AccInput.KEEP)
    program("OP_POOL", isa.PoolMode.SUM)
    refused(program, StreamError, "no accumulator")


def test_result_larger_than_memory_can_be() -> None:
    """Stored nowhere, so that no feature map bounds it."""
    program = Program(Family.U85)
    storage = isa.Storage.NONE
    program.feature_map("OFM", TARGET, (1, 1, 1), "i1", scale_mode=isa.ScaleMode.GLOBAL, storage=storage)
    for axis in ("HEIGHT", "WIDTH", "DEPTH"):
        program(f"OFM_{axis}_M1", 0xFFFF)
    program.feature_map("IFM2", SOURCE, (1, 1, 1), "<i4")
    program("ACC_FORMAT", input=isa.AccInput.IFM2, output=isa.AccOutput.DISABLED)
    program("OP_POOL", isa.PoolMode.NONE)
    refused(program, NotModelled, "elements")


def test_resize_has_no_second_input() -> None:
    program = Program(Family.U85)
    program.feature_map("OFM", TARGET, (1, 1, 1), "i1", scale_mode=isa.ScaleMode.GLOBAL)
    program.feature_map("IFM", SOURCE, (1, 1, 1), "i1")
    program("ACC_FORMAT", input=isa.AccInput.IFM2)
    program("OP_RESIZE", isa.ResizeMode.NEAREST)
    refused(program, NotModelled, "from IFM2")


def test_empty_chaining_buffer() -> None:
    program = Program(Family.U85)
    program.feature_map("OFM", TARGET, (1, 1, 1), "i1", scale_mode=isa.ScaleMode.GLOBAL)
    program.feature_map("IFM", SOURCE, (1, 1, 1), "i1", storage=isa.Storage.CHAINED)
    program("OP_ELEMENTWISE", Mode.ABS)
    refused(program, StreamError, "chaining buffer 1 is empty")


# --- accumulator --------------------------------------------------------------------------------------------


def test_accumulator_kept_over_matrix_products_loses_the_zero_point_each_time() -> None:
    """Two products with different zero points, the first kept, the sum stored as int32."""
    rng = np.random.default_rng(3)
    program = Program(Family.U85)
    total = np.zeros((3, 2), np.int64)
    for number, (kept, zero_points) in enumerate([(True, (17, 3)), (False, (-90, -5))]):
        a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((1, 3, 4), (1, 2, 4)))
        for name, array, zero_point in (("IFM", a, zero_points[0]), ("IFM2", b, zero_points[1])):
            offset = (SOURCE if name == "IFM" else INDEX) + 0x100 * number
            program.put(offset, array)
            program.feature_map(name, offset, array.shape, "i1")
            program(f"{name}_ZERO_POINT", zero_point & 0xFFFF)
        program("IFM_DEPTH_M1", 3)
        storage = isa.Storage.NONE if kept else isa.Storage.TILE_2X2
        program.feature_map("OFM", TARGET, (1, 3, 2), "<i4", scale_mode=isa.ScaleMode.GLOBAL, storage=storage)
        program("OFM_SCALE", scale=1, shift=0)
        program("ACTIVATION", function=isa.Activation85.NONE, clip_off=1)
        source, output = (
            (isa.AccInput.RESET, isa.AccOutput.DISABLED)
            if kept
            else (isa.AccInput.KEEP, isa.AccOutput.ENABLED)
        )
        program("ACC_FORMAT", input=source, output=output)
        program("OP_CONV", weights_ifm2=1)
        total += (a[0].astype(np.int64) - zero_points[0]) @ (b[0].astype(np.int64) - zero_points[1]).T
    result = program.run()
    np.testing.assert_array_equal(program.get(TARGET, (3, 2), "<i4"), total)
    assert result.macs == 2 * 3 * 2 * 4

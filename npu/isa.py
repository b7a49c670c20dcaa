# SPDX-License-Identifier: Apache-2.0
"""The Ethos-U command set as one table: opcodes, fields, enumerations, and the families that have them.

Decoder, encoder, disassembler, register state and tests all read this table; nothing else knows a bit
position.

Encoding. Word 0 holds the opcode in bits 9:0, the length in bits 15:14 (0 one word, 1 two words) and a 16-bit
parameter in bits 31:16; a two-word command has a 32-bit payload behind it. The *operand* that fields index
is the parameter of a one-word command, and `payload | parameter << 32` (48 bits) of a two-word command, so
that a 40-bit address is simply bits 39:0.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from npu.config import Family

# --- enumerations -------------------------------------------------------------------------------------------


class PoolMode(enum.IntEnum):
    MAX = 0
    AVERAGE = 1
    REDUCE_SUM = 2
    SUM = 3
    NONE = 4
    MIN = 5
    ARGMAX_X = 6
    ARGMAX_Y = 7


class ElementwiseMode(enum.IntEnum):
    MUL = 0
    ADD = 1
    SUB = 2
    MIN = 3
    MAX = 4
    LRELU = 5
    ABS = 6
    CLZ = 7
    SHR = 8
    SHL = 9
    LSR = 10
    DIV = 11
    CMP_EQ = 16
    CMP_NE = 17
    CMP_GE = 18
    CMP_GT = 19
    AND = 33
    OR = 34
    XOR = 35
    NOT = 36
    AND_NOT = 42


class ResizeMode(enum.IntEnum):
    BILINEAR = 0
    REPLICATE = 1
    NEAREST = 2


class Precision(enum.IntEnum):
    """Element width; the value is log2 of the size in bytes."""

    BITS_8 = 0
    BITS_16 = 1
    BITS_32 = 2
    BITS_64 = 3


class Layout(enum.IntEnum):
    NHWC = 0
    NHCWB16 = 1


class Storage(enum.IntEnum):
    TILE_2X2 = 0
    TILE_3X1 = 1
    CHAINED = 2
    NONE = 3


class Upscale(enum.IntEnum):
    NONE = 0
    NEAREST = 1
    ZEROS = 2


class OperandScale(enum.IntEnum):
    """U55/U65 ADD and SUB: both operands scaled by 16 bits, or one by 32 bits and one by a fixed shift."""

    BOTH_16 = 0
    OPA_32 = 1
    OPB_32 = 2


class Round5x(enum.IntEnum):
    """Rounding of U55/U65."""

    DOUBLE = 0
    TRUNCATE = 1
    NATURAL = 2


class Rounding(enum.IntEnum):
    """Rounding of the U85 output stage."""

    DOUBLE_SYMMETRIC = 0
    NATURAL = 1
    DOUBLE_ASYMMETRIC = 2
    SYMMETRIC = 3
    TRUNCATE_TO_ZERO = 4
    TRUNCATE_TO_LOWER = 5


class InputRounding(enum.IntEnum):
    """Rounding of the U85 input scaling."""

    DOUBLE_SYMMETRIC = 0
    NATURAL = 1


class ScaleMode(enum.IntEnum):
    PER_CHANNEL = 0
    GLOBAL = 1


class Reverse(enum.IntEnum):
    NONE = 0
    H = 1
    W = 2
    C = 3


class Transpose(enum.IntEnum):
    """Order in which the axes of the result (named before the transpose) are written as H, W, C."""

    HWC = 0
    WHC = 1
    HCW = 2
    WCH = 3
    CHW = 6
    CWH = 7


class WeightOrder(enum.IntEnum):
    DEPTH_FIRST = 0
    PART_KERNEL_FIRST = 1


class WeightCoding(enum.IntEnum):
    SWD = 0
    FWD = 1


class ParallelMode(enum.IntEnum):
    SINGLE_CORE = 0
    DUAL_CORE_DEPTH = 1


class AccFormat5x(enum.IntEnum):
    INT32 = 0
    INT40 = 1


class AccFormat85(enum.IntEnum):
    INT32 = 0
    INT48 = 1


class AccInput(enum.IntEnum):
    RESET = 0
    KEEP = 1
    IFM2 = 2


class AccOutput(enum.IntEnum):
    ENABLED = 0
    DISABLED = 1


class Microblock(enum.IntEnum):
    """OFM microblock of U85, height x width."""

    U1X1 = 0
    U1X2 = 1
    U1X4 = 2
    U2X2 = 3
    U2X4 = 4
    U4X4 = 5

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width)."""
        return int(self.name[1]), int(self.name[3])


class Activation5x(enum.IntEnum):
    NONE = 0
    TANH = 3
    SIGMOID = 4
    TABLE_0 = 16
    TABLE_1 = 17
    TABLE_2 = 18
    TABLE_3 = 19
    TABLE_4 = 20
    TABLE_5 = 21
    TABLE_6 = 22
    TABLE_7 = 23


class ClipRange5x(enum.IntEnum):
    OFM_PRECISION = 0
    UINT8 = 2
    INT8 = 3
    INT16 = 5


class Activation85(enum.IntEnum):
    NONE = 0
    LUT_U8_U8 = 1
    LUT_S8_S8 = 4
    LUT_S8_S16 = 5
    LUT_S8_S32 = 7
    LUT_S16_S16 = 8
    LUT_S16_S32 = 9
    TANH = 10
    SIGMOID = 11


class RegionMode(enum.IntEnum):
    EXTERNAL = 0
    INTERNAL = 1


class StrideMode(enum.IntEnum):
    D1 = 0
    D2 = 1
    D3 = 2


# --- the two kinds of table entry ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """Bits hi:lo of an operand, a two's complement number if `signed`, a member of `enum` if given."""

    name: str
    hi: int
    lo: int
    enum: type[enum.IntEnum] | None = None
    signed: bool = False

    @cached_property
    def mask(self) -> int:
        """Bits of the operand it covers."""
        return ((1 << (self.hi - self.lo + 1)) - 1) << self.lo

    def extract(self, operand: int) -> int:
        """Value of the field; the enum member where the code is a known one, else the bare number."""
        value = (operand & self.mask) >> self.lo
        if self.signed and value >> (self.hi - self.lo):
            value -= 1 << (self.hi - self.lo + 1)
        return self._members.get(value, value)

    @cached_property
    def _members(self) -> Mapping[int, int]:
        return {} if self.enum is None else {int(member): member for member in self.enum}

    def insert(self, value: int) -> int:
        """The operand bits that hold `value`.

        Raises:
            ValueError: the value does not fit the field.
        """
        bits = value << self.lo & self.mask
        if self.extract(bits) != value:
            raise ValueError(f"{value} does not fit field {self.name} [{self.hi}:{self.lo}]")
        return bits


@dataclass(frozen=True)
class CommandSpec:
    """One command of the table.

    Attributes:
        wide: two-word command (its opcodes are a space of their own).
    """

    name: str
    opcode: int
    wide: bool
    families: frozenset[Family]
    fields: tuple[Field, ...]

    @property
    def is_operation(self) -> bool:
        """Starts something, rather than latching a register: bit 8 clear in one word, set in two words."""
        return bool(self.opcode & 0x100) == self.wide

    @cached_property
    def field_mask(self) -> int:
        """Operand bits that some field covers; the others are reserved."""
        mask = 0
        for field in self.fields:
            mask |= field.mask
        return mask

    @cached_property
    def field(self) -> Mapping[str, Field]:
        return MappingProxyType({field.name: field for field in self.fields})

    def operand(self, **values: int) -> int:
        """Operand with the named fields set and all others zero.

        Raises:
            KeyError: no such field. ValueError: a value does not fit.
        """
        bits = 0
        for name, value in values.items():
            bits |= self.field[name].insert(value)
        return bits


# --- the table ----------------------------------------------------------------------------------------------

ALL = frozenset(Family)
U55 = frozenset({Family.U55})
U5X = frozenset({Family.U55, Family.U65})
U65 = frozenset({Family.U65})
U85 = frozenset({Family.U85})


def _one(opcode: int, name: str, *fields: Field, families: frozenset[Family] = ALL) -> CommandSpec:
    return CommandSpec(name, opcode, False, families, fields)


def _two(opcode: int, name: str, *fields: Field, families: frozenset[Family] = ALL) -> CommandSpec:
    return CommandSpec(name, opcode, True, families, fields)


def _value(hi: int = 15, *, signed: bool = False) -> Field:
    return Field("value", hi, 0, signed=signed)


_REGION = Field("region", 2, 0)
_ADDRESS = Field("address", 39, 0)
_STRIDE = Field("stride", 39, 0, signed=True)
_LENGTH = Field("length", 31, 0)

_OPERATIONS = (
    _one(0x000, "OP_STOP", Field("mask", 15, 0)),
    _one(0x001, "OP_IRQ", Field("mask", 15, 0)),
    _one(0x002, "OP_CONV", families=U5X),
    _one(0x002, "OP_CONV", Field("weights_ifm2", 0, 0), families=U85),
    _one(0x003, "OP_DEPTHWISE"),
    _one(0x005, "OP_POOL", Field("mode", 2, 0, PoolMode)),
    _one(0x006, "OP_ELEMENTWISE", Field("mode", 5, 0, ElementwiseMode)),
    _one(0x007, "OP_RESIZE", Field("mode", 1, 0, ResizeMode), families=U85),
    _one(0x010, "OP_DMA_START"),
    _one(0x011, "OP_DMA_WAIT", Field("k", 3, 0), families=U5X),
    _one(0x011, "OP_DMA_WAIT", Field("k", 1, 0), families=U85),
    _one(0x012, "OP_KERNEL_WAIT", Field("n", 1, 0)),
    _one(0x013, "OP_PMU_MASK", Field("enable", 0, 0)),
    _two(0x100, "OP_BRANCH", Field("target", 31, 0), Field("condition", 32, 32), families=U85),
)

_IFM_PRECISION = (
    Field("signed", 0, 0),
    Field("precision", 3, 2, Precision),
    Field("layout", 7, 6, Layout),
)

_IFM = (
    _one(0x100, "IFM_PAD_TOP", _value(6)),
    _one(0x101, "IFM_PAD_LEFT", _value(6)),
    _one(0x102, "IFM_PAD_RIGHT", _value(7)),
    _one(0x103, "IFM_PAD_BOTTOM", _value(7)),
    _one(0x104, "IFM_DEPTH_M1", _value()),
    _one(
        0x105,
        "IFM_PRECISION",
        *_IFM_PRECISION,
        Field("scale_mode", 9, 8, OperandScale),
        Field("rounding", 15, 14, Round5x),
        families=U5X,
    ),
    _one(0x105, "IFM_PRECISION", *_IFM_PRECISION, Field("storage", 15, 14, Storage), families=U85),
    _one(0x107, "IFM_UPSCALE", Field("mode", 1, 0, Upscale)),
    _one(0x109, "IFM_ZERO_POINT", _value()),
    _one(0x10A, "IFM_WIDTH0_M1", _value()),
    _one(0x10B, "IFM_HEIGHT0_M1", _value()),
    _one(0x10C, "IFM_HEIGHT1_M1", _value()),
    _one(0x10D, "IFM_IB_END", _value(5), families=U5X),
    _one(0x10F, "IFM_REGION", _REGION),
    _two(0x000, "IFM_BASE0", _ADDRESS),
    _two(0x001, "IFM_BASE1", _ADDRESS),
    _two(0x002, "IFM_BASE2", _ADDRESS),
    _two(0x003, "IFM_BASE3", _ADDRESS),
    _two(0x004, "IFM_STRIDE_X", _STRIDE),
    _two(0x005, "IFM_STRIDE_Y", _STRIDE),
    _two(0x006, "IFM_STRIDE_C", _STRIDE),
)

_BROADCAST_85 = (
    Field("h", 0, 0),
    Field("w", 1, 1),
    Field("c", 2, 2),
    Field("scalar", 3, 3),
)

_IFM2 = (
    _one(0x108, "IFM_BROADCAST", *_BROADCAST_85, families=U85),
    _one(0x180, "IFM2_BROADCAST", *_BROADCAST_85, families=U85),
    _one(
        0x180,
        "IFM2_BROADCAST",
        Field("h", 0, 0),
        Field("w", 1, 1),
        Field("c", 2, 2),
        Field("reversed_operands", 6, 6),
        Field("scalar", 7, 7),
        families=U5X,
    ),
    _one(0x181, "IFM2_SCALAR", _value(), families=U5X),
    _one(0x185, "IFM2_PRECISION", *_IFM_PRECISION, families=U5X),
    _one(0x185, "IFM2_PRECISION", *_IFM_PRECISION, Field("storage", 15, 14, Storage), families=U85),
    _one(0x189, "IFM2_ZERO_POINT", _value()),
    _one(0x18A, "IFM2_WIDTH0_M1", _value()),
    _one(0x18B, "IFM2_HEIGHT0_M1", _value()),
    _one(0x18C, "IFM2_HEIGHT1_M1", _value()),
    _one(0x18D, "IFM2_IB_START", _value(5), families=U5X),
    _one(0x18F, "IFM2_REGION", _REGION),
    _two(0x080, "IFM2_BASE0", _ADDRESS),
    _two(0x081, "IFM2_BASE1", _ADDRESS),
    _two(0x082, "IFM2_BASE2", _ADDRESS),
    _two(0x083, "IFM2_BASE3", _ADDRESS),
    _two(0x084, "IFM2_STRIDE_X", _STRIDE),
    _two(0x085, "IFM2_STRIDE_Y", _STRIDE),
    _two(0x086, "IFM2_STRIDE_C", _STRIDE),
)

_OFM_PRECISION = (
    Field("signed", 0, 0),
    Field("precision", 2, 1, Precision),
    Field("layout", 7, 6, Layout),
    Field("scale_mode", 8, 8, ScaleMode),
)

_OFM = (
    _one(0x111, "OFM_WIDTH_M1", _value()),
    _one(0x112, "OFM_HEIGHT_M1", _value()),
    _one(0x113, "OFM_DEPTH_M1", _value()),
    _one(0x114, "OFM_PRECISION", *_OFM_PRECISION, Field("rounding", 15, 14, Round5x), families=U5X),
    _one(
        0x114,
        "OFM_PRECISION",
        *_OFM_PRECISION,
        Field("reverse", 10, 9, Reverse),
        Field("transpose", 13, 11, Transpose),
        Field("storage", 15, 14, Storage),
        families=U85,
    ),
    _one(0x115, "OFM_BLK_WIDTH_M1", _value(5), families=U5X),
    _one(0x116, "OFM_BLK_HEIGHT_M1", _value(4), families=U5X),
    _one(0x117, "OFM_BLK_DEPTH_M1", _value(6), families=U5X),
    _one(0x115, "OFM_BLK_WIDTH_M1", _value(6), families=U85),
    _one(0x116, "OFM_BLK_HEIGHT_M1", _value(6), families=U85),
    _one(0x117, "OFM_BLK_DEPTH_M1", _value(9), families=U85),
    _one(0x118, "OFM_ZERO_POINT", _value()),
    _one(0x11A, "OFM_WIDTH0_M1", _value()),
    _one(0x11B, "OFM_HEIGHT0_M1", _value()),
    _one(0x11C, "OFM_HEIGHT1_M1", _value()),
    _one(0x11F, "OFM_REGION", _REGION),
    _two(0x010, "OFM_BASE0", _ADDRESS),
    _two(0x011, "OFM_BASE1", _ADDRESS),
    _two(0x012, "OFM_BASE2", _ADDRESS),
    _two(0x013, "OFM_BASE3", _ADDRESS),
    _two(0x014, "OFM_STRIDE_X", _STRIDE),
    _two(0x015, "OFM_STRIDE_Y", _STRIDE),
    _two(0x016, "OFM_STRIDE_C", _STRIDE),
)

_KERNEL = (
    _one(0x120, "KERNEL_WIDTH_M1", _value()),
    _one(0x121, "KERNEL_HEIGHT_M1", _value()),
    _one(
        0x122,
        "KERNEL_STRIDE",
        Field("stride_x_lsb", 0, 0),
        Field("stride_y_lsb", 1, 1),
        Field("weight_order", 2, 2, WeightOrder),
        Field("dilation_x_m1", 3, 3),
        Field("dilation_y_m1", 4, 4),
        Field("decomposition", 5, 5),
        Field("stride_x_msb", 6, 6),
        Field("stride_y_msb", 9, 9),
    ),
    _one(0x123, "PARALLEL_MODE", Field("mode", 0, 0, ParallelMode), families=U65),
    _one(0x124, "ACC_FORMAT", Field("format", 1, 0, AccFormat5x), families=U5X),
    _one(
        0x124,
        "ACC_FORMAT",
        Field("format", 1, 0, AccFormat85),
        Field("input", 5, 4, AccInput),
        Field("output", 6, 6, AccOutput),
        Field("microblock", 10, 8, Microblock),
        families=U85,
    ),
    _one(
        0x125,
        "ACTIVATION",
        Field("function", 4, 0, Activation5x),
        Field("clip_range", 14, 12, ClipRange5x),
        families=U5X,
    ),
    _one(
        0x125,
        "ACTIVATION",
        Field("function", 4, 0, Activation85),
        Field("table", 7, 5),
        Field("clip_off", 12, 12),
        families=U85,
    ),
    _one(0x126, "ACTIVATION_MIN", _value()),
    _one(0x127, "ACTIVATION_MAX", _value()),
    _one(0x12A, "RESIZE_X_SCALE_N_M1", _value(10), families=U85),
    _one(0x12B, "RESIZE_Y_SCALE_N_M1", _value(10), families=U85),
    _one(0x12C, "RESIZE_X_OFFSET", _value(11, signed=True), families=U85),
    _one(0x12D, "RESIZE_Y_OFFSET", _value(11, signed=True), families=U85),
    _one(0x12D, "AB_START", _value(5), families=U5X),
    _one(0x12F, "BLOCKDEP", _value(1), families=U5X),
    _one(0x12F, "BLOCKDEP", _value(2), families=U85),
)

_RESIZE_STEP = (
    Field("one_step_mod", 10, 0),
    Field("block_step_mod", 26, 16),
    Field("one_step_int", 35, 32),
    Field("block_step_int", 46, 36),
)

_WEIGHTS_AND_SCALES = (
    _one(0x128, "WEIGHT_REGION", _REGION),
    _one(0x129, "SCALE_REGION", _REGION),
    _one(0x12E, "WEIGHT_FORMAT", Field("coding", 0, 0, WeightCoding), Field("sparse", 4, 4), families=U85),
    _two(0x020, "WEIGHT_BASE", _ADDRESS),
    _two(0x021, "WEIGHT_LENGTH", _LENGTH),
    _two(0x022, "SCALE_BASE", _ADDRESS),
    _two(0x023, "SCALE_LENGTH", _LENGTH),
    _two(0x090, "WEIGHT1_BASE", _ADDRESS, families=U65 | U85),
    _two(0x091, "WEIGHT1_LENGTH", _LENGTH, families=U65 | U85),
    _two(0x092, "SCALE1_BASE", _ADDRESS, families=U65),
    _two(0x093, "SCALE1_LENGTH", _LENGTH, families=U65),
    _two(0x092, "WEIGHT2_BASE", _ADDRESS, families=U85),
    _two(0x093, "WEIGHT2_LENGTH", _LENGTH, families=U85),
    _two(0x094, "WEIGHT3_BASE", _ADDRESS, families=U85),
    _two(0x095, "WEIGHT3_LENGTH", _LENGTH, families=U85),
    _two(0x096, "RESIZE_X", *_RESIZE_STEP, families=U85),
    _two(0x097, "RESIZE_Y", *_RESIZE_STEP, families=U85),
)

_INPUT_SCALE_85 = (
    Field("scale", 30, 0),
    Field("shift", 37, 32),
    Field("double_round", 42, 38),
    Field("rounding", 45, 45, InputRounding),
)

_SCALING = (
    _two(0x024, "OFM_SCALE", Field("scale", 31, 0), Field("shift", 37, 32), families=U5X),
    _two(
        0x024,
        "OFM_SCALE",
        Field("scale", 30, 0),
        Field("shift", 37, 32),
        Field("double_round", 42, 38),
        Field("rounding", 47, 45, Rounding),
        families=U85,
    ),
    _two(0x025, "OPA_SCALE", Field("scale", 31, 0), Field("shift", 37, 32), families=U5X),
    _two(0x026, "OPB_SCALE", Field("scale", 15, 0), families=U5X),
    _two(0x025, "IFM_SCALE", *_INPUT_SCALE_85, families=U85),
    _two(0x026, "IFM2_SCALE", *_INPUT_SCALE_85, families=U85),
    _two(0x027, "OP_SCALAR", Field("scalar", 31, 0, signed=True), families=U85),
)

_DMA_REGION = (_REGION, Field("region_mode", 8, 8, RegionMode))
_DMA_STRIDE_MODE = Field("stride_mode", 10, 9, StrideMode)
_DMA_INDEX_MODE = Field("index_mode", 11, 11)

_DMA = (
    _one(0x130, "DMA0_SRC_REGION", *_DMA_REGION, families=U5X),
    _one(0x130, "DMA0_SRC_REGION", *_DMA_REGION, _DMA_STRIDE_MODE, _DMA_INDEX_MODE, families=U85),
    _one(0x131, "DMA0_DST_REGION", *_DMA_REGION, families=U55),
    _one(0x131, "DMA0_DST_REGION", *_DMA_REGION, _DMA_STRIDE_MODE, families=U65),
    _one(0x131, "DMA0_DST_REGION", *_DMA_REGION, _DMA_INDEX_MODE, families=U85),
    _one(0x132, "DMA0_SIZE0", _value(), families=U65 | U85),
    _one(0x133, "DMA0_SIZE1", _value(), families=U65 | U85),
    _one(0x134, "DMA0_IDX_REGION", _REGION, families=U85),
    _two(0x030, "DMA0_SRC", _ADDRESS),
    _two(0x031, "DMA0_DST", _ADDRESS),
    _two(0x032, "DMA0_LEN", Field("length", 39, 0)),
    _two(0x033, "DMA0_SKIP0", _STRIDE, families=U65),
    _two(0x034, "DMA0_SKIP1", _STRIDE, families=U65),
    _two(0x033, "DMA0_SRC_STRIDE0", _STRIDE, families=U85),
    _two(0x034, "DMA0_SRC_STRIDE1", _STRIDE, families=U85),
    _two(0x035, "DMA0_DST_STRIDE0", _STRIDE, families=U85),
    _two(0x036, "DMA0_DST_STRIDE1", _STRIDE, families=U85),
    _two(0x037, "DMA0_IDX", _ADDRESS, families=U85),
    _two(0x038, "DMA0_IDX_MAX", _LENGTH, families=U85),
    _two(0x039, "DMA0_IDX_SKIP1", _STRIDE, families=U85),
)

COMMANDS: tuple[CommandSpec, ...] = (
    _OPERATIONS + _IFM + _IFM2 + _OFM + _KERNEL + _WEIGHTS_AND_SCALES + _SCALING + _DMA
)


def _by_key(specs: Iterable[CommandSpec], family: Family) -> Mapping[tuple[bool, int], CommandSpec]:
    table: dict[tuple[bool, int], CommandSpec] = {}
    for spec in specs:
        if family in spec.families and table.setdefault((spec.wide, spec.opcode), spec) is not spec:
            raise AssertionError(f"{spec.name}: opcode {spec.opcode:#x} declared twice for {family.name}")
    return MappingProxyType(table)


BY_OPCODE: Mapping[Family, Mapping[tuple[bool, int], CommandSpec]] = MappingProxyType(
    {family: _by_key(COMMANDS, family) for family in Family}
)
"""Per family: (two-word, opcode) to command."""

BY_NAME: Mapping[Family, Mapping[str, CommandSpec]] = MappingProxyType(
    {family: MappingProxyType({spec.name: spec for spec in BY_OPCODE[family].values()}) for family in Family}
)
"""Per family: name to command."""

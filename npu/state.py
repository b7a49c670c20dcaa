# SPDX-License-Identifier: Apache-2.0
"""Latched register state, and the Operation or DmaTransfer an operation command reads out of it."""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from npu import isa
from npu.config import Family
from npu.errors import NotModelled
from npu.featuremap import FeatureMap
from npu.operation import (
    Accumulator,
    Activation,
    DmaPlace,
    DmaTransfer,
    Function,
    Kernel,
    Operation,
    Padding,
    ResizeAxis,
    WeightSource,
)
from npu.scaling import FROM_ROUND5X, Scale
from npu.stream import Command

E = TypeVar("E", bound=enum.IntEnum)

Shape = tuple[int, int, int]

LUT_BYTES = 2048
_SLOT = 256


class RegisterState:
    """The registers of one family: zero after reset, latched from operation to operation."""

    def __init__(self, family: Family):
        self.family = family
        self._specs = isa.BY_NAME[family]
        self._operands: dict[str, int] = {}
        self._fields: dict[tuple[str, str], int] = {}

    def latch(self, command: Command) -> None:
        """Set a register.

        Raises:
            NotModelled: a bit outside the register's fields is set.
        """
        spec = command.spec
        if command.operand & ~spec.field_mask:
            raise NotModelled(f"reserved bits {command.reserved:#x}")
        if self._operands.get(spec.name) != command.operand:
            self._operands[spec.name] = command.operand
            for field in spec.fields:
                self._fields.pop((spec.name, field.name), None)

    def value(self, name: str, field: str = "value") -> int:
        """Value of a register field."""
        value = self._fields.get((name, field))
        if value is None:
            value = self._specs[name].field[field].extract(self._operands.get(name, 0))
            self._fields[name, field] = value
        return value

    def choice(self, kind: type[E], name: str, field: str) -> E:
        """Value of a register field that is an enumeration.

        Raises:
            NotModelled: the code is reserved.
        """
        value = self.value(name, field)
        if not isinstance(value, kind):
            raise NotModelled(f"{name}.{field} = {value} is reserved")
        return value


# --- feature maps -------------------------------------------------------------------------------------------


def element_type(state: RegisterState, register: str) -> np.dtype:
    """Element type an IFM, IFM2 or OFM precision register names."""
    precision = state.value(register, "precision")
    kind = "i" if state.value(register, "signed") else "u"
    return np.dtype(f"<{kind}{1 << precision}")


def _signed16(value: int) -> int:
    return value - 0x10000 if value & 0x8000 else value


def _storage(state: RegisterState, name: str) -> isa.Storage:
    if state.family is Family.U85:
        return state.choice(isa.Storage, f"{name}_PRECISION", "storage")
    return isa.Storage.TILE_2X2


def feature_map(state: RegisterState, name: str, shape: Shape) -> FeatureMap:
    """The map `name` ("IFM", "IFM2", "OFM") of the given shape in memory."""
    dtype = element_type(state, f"{name}_PRECISION")
    zero_point = state.value(f"{name}_ZERO_POINT")
    return FeatureMap(
        shape=shape,
        dtype=dtype,
        layout=state.choice(isa.Layout, f"{name}_PRECISION", "layout"),
        storage=_storage(state, name),
        region=state.value(f"{name}_REGION", "region"),
        bases=_bases(state, name),
        width0=state.value(f"{name}_WIDTH0_M1") + 1,
        height0=state.value(f"{name}_HEIGHT0_M1") + 1,
        height1=state.value(f"{name}_HEIGHT1_M1") + 1,
        stride_y=state.value(f"{name}_STRIDE_Y", "stride"),
        stride_x=state.value(f"{name}_STRIDE_X", "stride"),
        stride_c=state.value(f"{name}_STRIDE_C", "stride"),
        zero_point=_signed16(zero_point) if dtype.kind == "i" else zero_point,
    )


def _bases(state: RegisterState, name: str) -> tuple[int, int, int, int]:
    first, second, third, fourth = (state.value(f"{name}_BASE{tile}", "address") for tile in range(4))
    return first, second, third, fourth


def _ofm_shape(state: RegisterState) -> Shape:
    return (
        state.value("OFM_HEIGHT_M1") + 1,
        state.value("OFM_WIDTH_M1") + 1,
        state.value("OFM_DEPTH_M1") + 1,
    )


TRANSPOSE_AXES = {
    isa.Transpose.HWC: (0, 1, 2),
    isa.Transpose.WHC: (1, 0, 2),
    isa.Transpose.HCW: (0, 2, 1),
    isa.Transpose.WCH: (1, 2, 0),
    isa.Transpose.CHW: (2, 0, 1),
    isa.Transpose.CWH: (2, 1, 0),
}
"""Axes of the result that become H, W, C in memory."""


# --- kernel and input geometry ------------------------------------------------------------------------------


def _kernel(state: RegisterState) -> Kernel:
    def stride(axis: str) -> int:
        lsb = state.value("KERNEL_STRIDE", f"stride_{axis}_lsb")
        return 1 + lsb + 2 * state.value("KERNEL_STRIDE", f"stride_{axis}_msb")

    if state.value("KERNEL_STRIDE", "decomposition"):
        raise NotModelled("kernel decomposition other than 8x8")
    return Kernel(
        height=state.value("KERNEL_HEIGHT_M1") + 1,
        width=state.value("KERNEL_WIDTH_M1") + 1,
        stride_y=stride("y"),
        stride_x=stride("x"),
        dilation_y=state.value("KERNEL_STRIDE", "dilation_y_m1") + 1,
        dilation_x=state.value("KERNEL_STRIDE", "dilation_x_m1") + 1,
        order=state.choice(isa.WeightOrder, "KERNEL_STRIDE", "weight_order"),
    )


def _padding(state: RegisterState) -> Padding:
    return Padding(*(state.value(f"IFM_PAD_{side}") for side in ("TOP", "LEFT", "BOTTOM", "RIGHT")))


def _window_input(ofm: Shape, kernel: Kernel, pad: Padding, upscale: isa.Upscale, depth: int) -> Shape:
    """Shape of the IFM, which no register gives: what the windows reach, without padding and upscaling."""
    factor = 1 if upscale is isa.Upscale.NONE else 2
    height = (ofm[0] - 1) * kernel.stride_y + kernel.height - pad.top - pad.bottom
    width = (ofm[1] - 1) * kernel.stride_x + kernel.width - pad.left - pad.right
    return max(0, -(-height // factor)), max(0, -(-width // factor)), depth


# --- output stage -------------------------------------------------------------------------------------------


def _accumulator(state: RegisterState) -> Accumulator:
    if state.family is not Family.U85:
        return Accumulator(40 if state.value("ACC_FORMAT", "format") else 32)
    return Accumulator(
        bits=48 if state.value("ACC_FORMAT", "format") else 32,
        source=state.choice(isa.AccInput, "ACC_FORMAT", "input"),
        output=state.choice(isa.AccOutput, "ACC_FORMAT", "output") is isa.AccOutput.ENABLED,
        microblock=state.choice(isa.Microblock, "ACC_FORMAT", "microblock").shape,
    )


def _ofm_scale(state: RegisterState) -> Scale:
    multiplier, shift = state.value("OFM_SCALE", "scale"), state.value("OFM_SCALE", "shift")
    if state.family is Family.U85:
        rounding = state.choice(isa.Rounding, "OFM_SCALE", "rounding")
        return Scale(multiplier, shift, rounding, state.value("OFM_SCALE", "double_round"))
    return Scale(multiplier, shift, FROM_ROUND5X[state.choice(isa.Round5x, "OFM_PRECISION", "rounding")])


def _limits(dtype: np.dtype) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _clip(state: RegisterState, dtype: np.dtype) -> tuple[int, int]:
    """ACTIVATION_MIN and MAX, signed as the result is, within the range of `dtype`."""
    low, high = state.value("ACTIVATION_MIN"), state.value("ACTIVATION_MAX")
    if dtype.kind == "i":
        low, high = _signed16(low), _signed16(high)
    return _within((low, high), dtype)


def _within(limits: tuple[int, int], dtype: np.dtype) -> tuple[int, int]:
    bottom, top = _limits(dtype)
    return max(limits[0], bottom), min(limits[1], top)


_FUNCTIONS85 = {
    isa.Activation85.NONE: (Function.NONE, None),
    isa.Activation85.TANH: (Function.TANH, None),
    isa.Activation85.SIGMOID: (Function.SIGMOID, None),
    isa.Activation85.LUT_U8_U8: (Function.TABLE, "u1"),
    isa.Activation85.LUT_S8_S8: (Function.TABLE, "i1"),
    isa.Activation85.LUT_S8_S16: (Function.TABLE, "i1"),
    isa.Activation85.LUT_S8_S32: (Function.TABLE, "i1"),
    isa.Activation85.LUT_S16_S16: (Function.TABLE, "<i2"),
    isa.Activation85.LUT_S16_S32: (Function.TABLE, "<i2"),
}


def _table_bytes(table_input: np.dtype, output: np.dtype) -> int:
    """Size of a table: an entry per 8-bit value, or 512 pairs of int16 base and slope for 16 bits."""
    return 256 * output.itemsize if table_input.itemsize == 1 else LUT_BYTES


def _activation85(state: RegisterState) -> Activation:
    function, code = _FUNCTIONS85[state.choice(isa.Activation85, "ACTIVATION", "function")]
    ofm = element_type(state, "OFM_PRECISION")
    table_input = np.dtype(code) if code else None
    clip = None if state.value("ACTIVATION", "clip_off") else _clip(state, table_input or ofm)
    if table_input is None:
        return Activation(function, clip)
    offset = state.value("ACTIVATION", "table") * _table_bytes(table_input, ofm)
    return Activation(function, clip or _limits(table_input), table_input, offset)


_RANGES5X = {isa.ClipRange5x.UINT8: "u1", isa.ClipRange5x.INT8: "i1", isa.ClipRange5x.INT16: "<i2"}


def _activation5x(state: RegisterState) -> Activation:
    code = state.choice(isa.Activation5x, "ACTIVATION", "function")
    ofm = element_type(state, "OFM_PRECISION")
    clip_range = state.choice(isa.ClipRange5x, "ACTIVATION", "clip_range")
    clipped = ofm if clip_range is isa.ClipRange5x.OFM_PRECISION else np.dtype(_RANGES5X[clip_range])
    # A 32-bit result is not clipped: the two limits have 16 bits.
    clip = _clip(state, clipped) if clipped.itemsize < 4 else None
    if code >= isa.Activation5x.TABLE_0:
        table_input = element_type(state, "IFM_PRECISION") if ofm.itemsize > 2 else ofm
        clip = _within(clip or _limits(table_input), table_input)
        return Activation(Function.TABLE, clip, table_input, (code - isa.Activation5x.TABLE_0) * _SLOT)
    functions = {isa.Activation5x.TANH: Function.TANH, isa.Activation5x.SIGMOID: Function.SIGMOID}
    return Activation(functions.get(code, Function.NONE), clip)


# --- weights ------------------------------------------------------------------------------------------------


def _streams(state: RegisterState, prefixes: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (state.value(f"{prefix}_BASE", "address"), state.value(f"{prefix}_LENGTH", "length"))
        for prefix in prefixes
    )


_WEIGHT_PREFIXES = {
    Family.U55: ("WEIGHT",),
    Family.U65: ("WEIGHT", "WEIGHT1"),
    Family.U85: ("WEIGHT", "WEIGHT1", "WEIGHT2", "WEIGHT3"),
}
_SCALE_PREFIXES = {Family.U55: ("SCALE",), Family.U65: ("SCALE", "SCALE1"), Family.U85: ("SCALE",)}


def _weights(state: RegisterState) -> WeightSource:
    """All streams the family has; an NPU of fewer cores reads the first ones."""
    coding, sparse = isa.WeightCoding.SWD, False
    if state.family is Family.U85:
        coding = state.choice(isa.WeightCoding, "WEIGHT_FORMAT", "coding")
        sparse = bool(state.value("WEIGHT_FORMAT", "sparse"))
    return WeightSource(
        region=state.value("WEIGHT_REGION", "region"),
        streams=_streams(state, _WEIGHT_PREFIXES[state.family]),
        scale_region=state.value("SCALE_REGION", "region"),
        scale_streams=_streams(state, _SCALE_PREFIXES[state.family]),
        coding=coding,
        sparse=sparse,
    )


# --- elementwise --------------------------------------------------------------------------------------------

UNARY = frozenset(
    {isa.ElementwiseMode.ABS, isa.ElementwiseMode.CLZ, isa.ElementwiseMode.LRELU, isa.ElementwiseMode.NOT}
)
_IMPLIED_SHIFT = {1: 19, 2: 14}
_DOUBLE_ROUND = {1: 20, 2: 15}


def _operand_scales5x(state: RegisterState) -> tuple[Scale, Scale]:
    """U55/U65 ADD and SUB: one operand scaled by 32 bits, the other shifted left, or both by 16 bits."""
    mode = state.choice(isa.OperandScale, "IFM_PRECISION", "scale_mode")
    multiplier, shift = state.value("OPA_SCALE", "scale"), state.value("OPA_SCALE", "shift")
    if mode is isa.OperandScale.BOTH_16:
        return Scale(multiplier), Scale(state.value("OPB_SCALE", "scale"))
    size = element_type(state, "IFM_PRECISION").itemsize
    rounding = FROM_ROUND5X[state.choice(isa.Round5x, "IFM_PRECISION", "rounding")]
    scaled = Scale(multiplier, shift, rounding, _DOUBLE_ROUND.get(size, 15))
    shifted = Scale(1 << _IMPLIED_SHIFT.get(size, 14))
    return (scaled, shifted) if mode is isa.OperandScale.OPA_32 else (shifted, scaled)


def _input_scale85(state: RegisterState, name: str) -> Scale:
    return Scale(
        state.value(name, "scale"),
        state.value(name, "shift"),
        isa.Rounding(state.choice(isa.InputRounding, name, "rounding")),
        state.value(name, "double_round"),
    )


def _operand(state: RegisterState, name: str, shape: Shape) -> FeatureMap:
    """An elementwise operand: of the OFM's shape, with broadcast axes of extent 1, or a scalar."""
    register = f"{name}_BROADCAST"
    if not state.value(register, "scalar"):
        flags = [state.value(register, axis) for axis in "hwc"]
        height, width, depth = (1 if flag else n for flag, n in zip(flags, shape, strict=True))
        return feature_map(state, name, (height, width, depth))
    operand = feature_map(state, name, (1, 1, 1))
    if state.family is Family.U85:
        value = state.value("OP_SCALAR", "scalar")
    else:
        value = state.value("IFM2_SCALAR")
        if operand.dtype.kind == "i":
            value = _signed16(value)
    return replace(operand, storage=isa.Storage.NONE, scalar=value)


def _elementwise(state: RegisterState, command: Command, shape: Shape) -> dict[str, Any]:
    binary = command.mode(isa.ElementwiseMode) not in UNARY
    if state.family is Family.U85:
        return {
            "ifm": _operand(state, "IFM", shape),
            "ifm2": _operand(state, "IFM2", shape) if binary else None,
            "operand_scales": (_input_scale85(state, "IFM_SCALE"), _input_scale85(state, "IFM2_SCALE")),
        }
    return {
        "ifm": feature_map(state, "IFM", shape),
        "ifm2": _operand(state, "IFM2", shape) if binary else None,
        "ifm2_first": binary and bool(state.value("IFM2_BROADCAST", "reversed_operands")),
        "operand_scales": _operand_scales5x(state),
    }


# --- resize -------------------------------------------------------------------------------------------------


def _resize_axis(state: RegisterState, axis: str) -> ResizeAxis:
    denominator = state.value(f"RESIZE_{axis}_SCALE_N_M1") + 1
    whole, rest = state.value(f"RESIZE_{axis}", "one_step_int"), state.value(f"RESIZE_{axis}", "one_step_mod")
    return ResizeAxis(denominator, state.value(f"RESIZE_{axis}_OFFSET"), whole * denominator + rest)


def _resize(state: RegisterState, command: Command, shape: Shape) -> dict[str, Any]:
    """The kernel registers hold the extent of the IFM."""
    ifm = state.value("KERNEL_HEIGHT_M1") + 1, state.value("KERNEL_WIDTH_M1") + 1, shape[2]
    return {
        "ifm": feature_map(state, "IFM", ifm),
        "resize": (_resize_axis(state, "Y"), _resize_axis(state, "X")),
    }


# --- windowed operations ------------------------------------------------------------------------------------


def _windowed(state: RegisterState, shape: Shape, depth: int) -> dict[str, Any]:
    """What convolutions and pools have in common."""
    kernel, padding = _kernel(state), _padding(state)
    upscale = state.choice(isa.Upscale, "IFM_UPSCALE", "mode")
    inputs = {
        "ifm": feature_map(state, "IFM", _window_input(shape, kernel, padding, upscale, depth)),
        "kernel": kernel,
        "padding": padding,
        "upscale": upscale,
    }
    if _accumulator(state).source is isa.AccInput.IFM2:
        inputs["ifm2"] = feature_map(state, "IFM2", shape)
    return inputs


def _conv(state: RegisterState, command: Command, shape: Shape) -> dict[str, Any]:
    depth = state.value("IFM_DEPTH_M1") + 1
    inputs = _windowed(state, shape, depth)
    if not (state.family is Family.U85 and command.value("weights_ifm2")):
        return inputs | {"weights": _weights(state)}
    if "ifm2" in inputs:
        raise NotModelled("IFM2 as weights and as accumulator")
    return inputs | {"ifm2": feature_map(state, "IFM2", (1, shape[2], depth))}


def _depthwise(state: RegisterState, command: Command, shape: Shape) -> dict[str, Any]:
    return _windowed(state, shape, shape[2]) | {"weights": _weights(state)}


def _pool(state: RegisterState, command: Command, shape: Shape) -> dict[str, Any]:
    """Pools have no weights, but may take their scales from a stream."""
    reduced = command.mode(isa.PoolMode) is isa.PoolMode.REDUCE_SUM
    depth = state.value("IFM_DEPTH_M1") + 1 if reduced else shape[2]
    return _windowed(state, shape, depth) | {"weights": _weights(state)}


# --- the whole operation ------------------------------------------------------------------------------------

_INPUTS = {
    "OP_CONV": _conv,
    "OP_DEPTHWISE": _depthwise,
    "OP_POOL": _pool,
    "OP_ELEMENTWISE": _elementwise,
    "OP_RESIZE": _resize,
}


def operation(state: RegisterState, command: Command) -> Operation:
    """The operation that `command` starts with the registers as they are.

    Raises:
        NotModelled: a reserved code, or a combination without known meaning.
    """
    shape = _ofm_shape(state)
    inputs = _INPUTS[command.name](state, command, shape)
    transpose, reverse = _reordering(state)
    return Operation(
        command=command,
        family=state.family,
        ofm=feature_map(state, "OFM", _permuted(shape, TRANSPOSE_AXES[transpose])),
        ofm_shape=shape,
        ofm_block=(_block(state, "HEIGHT"), _block(state, "WIDTH"), _block(state, "DEPTH")),
        blockdep=state.value("BLOCKDEP"),
        transpose=transpose,
        reverse=reverse,
        accumulator=_accumulator(state),
        activation=_activation85(state) if state.family is Family.U85 else _activation5x(state),
        ofm_scale=_ofm_scale(state),
        per_channel=state.choice(isa.ScaleMode, "OFM_PRECISION", "scale_mode") is isa.ScaleMode.PER_CHANNEL,
        **inputs,
    )


def _reordering(state: RegisterState) -> tuple[isa.Transpose, isa.Reverse]:
    if state.family is not Family.U85:
        return isa.Transpose.HWC, isa.Reverse.NONE
    return (
        state.choice(isa.Transpose, "OFM_PRECISION", "transpose"),
        state.choice(isa.Reverse, "OFM_PRECISION", "reverse"),
    )


def _permuted(shape: Shape, axes: Shape) -> Shape:
    return shape[axes[0]], shape[axes[1]], shape[axes[2]]


def _block(state: RegisterState, axis: str) -> int:
    return state.value(f"OFM_BLK_{axis}_M1") + 1


# --- DMA ----------------------------------------------------------------------------------------------------


def _dma_place(state: RegisterState, side: str, stride0: int, stride1: int, indexed: bool) -> DmaPlace:
    register = f"DMA0_{side}_REGION"
    return DmaPlace(
        region=state.value(register, "region"),
        internal=state.choice(isa.RegionMode, register, "region_mode") is isa.RegionMode.INTERNAL,
        address=state.value(f"DMA0_{side}", "address"),
        stride0=stride0,
        stride1=stride1,
        indexed=indexed,
    )


def dma_transfer(state: RegisterState, command: Command) -> DmaTransfer:
    """The transfer that DMA_START starts."""
    if state.family is Family.U85:
        return _dma85(state, command)
    length = state.value("DMA0_LEN", "length")
    if state.family is Family.U55:
        mode = isa.StrideMode.D1
    else:
        mode = state.choice(isa.StrideMode, "DMA0_DST_REGION", "stride_mode")
    size0 = state.value("DMA0_SIZE0") if mode >= isa.StrideMode.D2 else 1
    size1 = state.value("DMA0_SIZE1") if mode is isa.StrideMode.D3 else 1
    # The source is contiguous; the destination skips after each row and after each plane.
    skip0 = state.value("DMA0_SKIP0", "stride") if mode >= isa.StrideMode.D2 else 0
    skip1 = state.value("DMA0_SKIP1", "stride") if mode is isa.StrideMode.D3 else 0
    row = length + skip0
    return DmaTransfer(
        command=command,
        source=_dma_place(state, "SRC", length, length * size0, False),
        destination=_dma_place(state, "DST", row, row * size0 + skip1, False),
        length=length,
        size0=size0,
        size1=size1,
    )


def _dma85(state: RegisterState, command: Command) -> DmaTransfer:
    mode = state.choice(isa.StrideMode, "DMA0_SRC_REGION", "stride_mode")
    return DmaTransfer(
        command=command,
        source=_dma_place85(state, "SRC"),
        destination=_dma_place85(state, "DST"),
        length=state.value("DMA0_LEN", "length"),
        size0=state.value("DMA0_SIZE0") if mode >= isa.StrideMode.D2 else 1,
        size1=state.value("DMA0_SIZE1") if mode is isa.StrideMode.D3 else 1,
        index_region=state.value("DMA0_IDX_REGION", "region"),
        index_address=state.value("DMA0_IDX", "address"),
        index_skip=state.value("DMA0_IDX_SKIP1", "stride"),
        index_max=state.value("DMA0_IDX_MAX", "length"),
    )


def _dma_place85(state: RegisterState, side: str) -> DmaPlace:
    stride0, stride1 = (state.value(f"DMA0_{side}_STRIDE{level}", "stride") for level in (0, 1))
    indexed = bool(state.value(f"DMA0_{side}_REGION", "index_mode"))
    return _dma_place(state, side, stride0, stride1, indexed)

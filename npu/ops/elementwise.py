# SPDX-License-Identifier: Apache-2.0
"""OP_ELEMENTWISE: one or two operands of the OFM's shape, broadcast along an axis or scalar.

Operands lose their zero point; then U85 scales those of ADD, SUB, MIN, MAX, ABS and the comparisons, U55 and
U65 those of ADD and SUB. The result goes through the output stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from npu.config import Family
from npu.errors import NotModelled
from npu.execution import Execution
from npu.featuremap import FeatureMap
from npu.guesses import Guess
from npu.isa import ElementwiseMode as Mode
from npu.operation import Operation
from npu.ops.output import OutputStage
from npu.scaling import ChannelScales, Scale, apply_scale, rounding_terms, scaled_magnitude

_BLOCK = 1 << 15
_SUMS = frozenset({Mode.ADD, Mode.SUB})
_SCALED_INPUTS = {
    Family.U55: _SUMS,
    Family.U65: _SUMS,
    Family.U85: _SUMS | {Mode.MIN, Mode.MAX, Mode.ABS, Mode.CMP_EQ, Mode.CMP_NE, Mode.CMP_GE, Mode.CMP_GT},
}


def execute(run: Execution, op: Operation) -> int:
    """All modes, row block by row block."""
    mode = op.command.mode(Mode)
    if mode > Mode.SHL and op.family is not Family.U85:
        raise NotModelled(f"elementwise mode {mode.name} on {op.family.name}")
    operands = _operands(run, op, mode)
    height, width, depth = op.ofm_shape
    scales = ChannelScales.uniform(_output_scale(run, op, mode))
    stage = OutputStage(run, op, scales, _bound(mode, operands), checked=False)
    step = max(1, _BLOCK // (width * depth))
    for top in range(0, height, step):
        shape = min(step, height - top), width, depth
        values = [operand.rows(top, shape[0]) for operand in operands]
        result = _COMPUTE[mode](op, values[0], values[-1])
        stage.rows(top, np.ascontiguousarray(np.broadcast_to(result, shape)))
    stage.close()
    return 0


# --- operands -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Operand:
    """Raw elements [h or 1, w or 1, c or 1] and what makes operand values of them.

    `bound` is a magnitude that none exceeds before scaling.

    """

    elements: np.ndarray
    zero_point: int
    scale: Scale
    bound: int

    def rows(self, top: int, count: int) -> np.ndarray:
        """int64 operand values of `count` rows from `top` on (of the only row, if broadcast)."""
        raw = self.elements if len(self.elements) == 1 else self.elements[top : top + count]
        values = raw.astype(np.int64)
        if self.zero_point:
            values -= self.zero_point
        return apply_scale(values, self.scale, self.bound)


def _operands(run: Execution, op: Operation, mode: Mode) -> list[_Operand]:
    maps = [op.ifm] if op.ifm2 is None else [op.ifm, op.ifm2]
    if op.ifm2_first:
        maps.reverse()  # before scaling: the first scale belongs to IFM2 then
    identity = Scale()
    scaled = mode in _SCALED_INPUTS[op.family]
    scales = op.operand_scales if scaled else (identity, identity)
    return [_operand(run, fm, scale) for fm, scale in zip(maps, scales, strict=False)]


def _operand(run: Execution, fm: FeatureMap, scale: Scale) -> _Operand:
    info = np.iinfo(fm.dtype)
    largest = max(-int(info.min), int(info.max), abs(fm.scalar)) + abs(fm.zero_point)
    return _Operand(run.load(fm), fm.zero_point, scale, largest)


def _bound(mode: Mode, operands: list[_Operand]) -> int:
    """A magnitude the result does not exceed."""
    sizes = [scaled_magnitude(operand.bound, operand.scale) for operand in operands]
    if mode in _SUMS:
        return sum(sizes)
    if mode is Mode.MUL:
        return sizes[0] * sizes[1]
    return max(sizes) << 32


def _output_scale(run: Execution, op: Operation, mode: Mode) -> Scale:
    """OFM_SCALE, as far as the mode uses it.

    A 32-bit MUL takes the shift alone: its product is (a * b + rounding) >> shift. Shifts use the field as
    the rounding rule of the shift itself. U55 and U65 switch output scaling off by the per-channel mode bit;
    their LRELU applies it to negative values only.
    """
    if mode in (Mode.SHR, Mode.SHL, Mode.LSR):
        return Scale()
    if mode is Mode.MUL and op.ifm.dtype.itemsize == 4:
        if op.ofm_scale.multiplier != 1:
            run.assume(Guess.MUL32_SHIFT_ONLY)
        return replace(op.ofm_scale, multiplier=1)
    if op.family is not Family.U85 and (op.per_channel or mode is Mode.LRELU):
        return Scale()
    return op.ofm_scale


# --- the operations -----------------------------------------------------------------------------------------


# Each takes the operation and both operands (a unary one gets its operand twice).
_Rule = Callable[[Operation, np.ndarray, np.ndarray], np.ndarray]


def _plain(function: np.ufunc) -> _Rule:
    return lambda op, a, b: function(a, b)


def _mask(comparison: np.ufunc) -> _Rule:
    """True is all ones."""
    return lambda op, a, b: -comparison(a, b).astype(np.int64)


def _lrelu(op: Operation, a: np.ndarray, _: np.ndarray) -> np.ndarray:
    """U85: IFM_SCALE above zero, IFM2_SCALE below; U55 and U65: OFM_SCALE below zero."""
    if op.family is Family.U85:
        positive, negative = op.operand_scales
    else:
        positive, negative = Scale(), op.ofm_scale
    return np.where(a < 0, apply_scale(a, negative), apply_scale(a, positive))


def _clz(op: Operation, a: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Leading zeros of the 32-bit pattern: 31 minus the exponent, and 32 for zero."""
    if op.ifm.dtype.itemsize != 4:
        raise NotModelled(f"CLZ of {8 * op.ifm.dtype.itemsize}-bit elements")
    exponent = np.frexp((a & 0xFFFFFFFF).astype(np.float64))[1]
    return 32 - exponent.astype(np.int64)


def _shift_amounts(b: np.ndarray) -> np.ndarray:
    if b.min() < 0 or b.max() > 31:
        raise NotModelled(f"shift by {int(b.min())} to {int(b.max())}")
    return b


def _shr(op: Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Arithmetic shift right, rounded by the rule of OFM_SCALE."""
    rule = op.ofm_scale
    terms = np.array([rounding_terms(s, rule.rounding, rule.double_round) for s in range(32)], np.int64)
    amounts = _shift_amounts(b)
    return (a + np.where(a < 0, terms[:, 1][amounts], terms[:, 0][amounts])) >> amounts


def _shl(op: Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a << _shift_amounts(b)


def _lsr(op: Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Logical shift right at the element's own width."""
    return (a & ((1 << 8 * op.ifm.dtype.itemsize) - 1)) >> _shift_amounts(b)


def _div(op: Operation, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quotient truncated to zero."""
    if not b.all():
        raise NotModelled("division by zero")
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


_COMPUTE: dict[Mode, _Rule] = {
    Mode.MUL: _plain(np.multiply),
    Mode.ADD: _plain(np.add),
    Mode.SUB: _plain(np.subtract),
    Mode.MIN: _plain(np.minimum),
    Mode.MAX: _plain(np.maximum),
    Mode.LRELU: _lrelu,
    Mode.ABS: lambda op, a, _: np.abs(a),
    Mode.CLZ: _clz,
    Mode.SHR: _shr,
    Mode.SHL: _shl,
    Mode.LSR: _lsr,
    Mode.DIV: _div,
    Mode.CMP_EQ: _mask(np.equal),
    Mode.CMP_NE: _mask(np.not_equal),
    Mode.CMP_GE: _mask(np.greater_equal),
    Mode.CMP_GT: _mask(np.greater),
    Mode.AND: _plain(np.bitwise_and),
    Mode.OR: _plain(np.bitwise_or),
    Mode.XOR: _plain(np.bitwise_xor),
    Mode.NOT: lambda op, a, _: ~a,
    Mode.AND_NOT: lambda op, a, b: a & ~b,
}

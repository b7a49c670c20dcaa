# SPDX-License-Identifier: Apache-2.0
"""Which kernels an inference ran, and the proof that SME was used where it was to be used and nowhere else.

Evidence is what executed: KleidiAI's functions by name, with instructions of class SME or SVE inside the
operator. Kernels for a single row ("sme_mla") multiply with SVE's instructions in SME's streaming mode and
have none of class SME; with SME hidden, no SVE kernel of that name runs.
Without counted instructions (on hardware) it is the operator's own name, whose types begin with P where
XNNPACK has chosen a KleidiAI kernel for SME.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from report.categories import CONVOLUTION, GEMM
from report.cpu_profile import CpuProfile, OperatorCost
from report.record import Check

_SME_CLASS, _STREAMING_CLASS = "sme", "sve"
_PACKED = "P"
_SAME_NAME = "QP8"
"""The packed type of dynamic quantisation: KleidiAI's kernels with SME and without have it alike."""


def heavy(profile: CpuProfile) -> list[OperatorCost]:
    """The operators that SME kernels exist for: convolutions and GEMMs."""
    return [operator for operator in profile.operators if operator.category in (CONVOLUTION, GEMM)]


def uses_sme(operator: OperatorCost) -> bool:
    """Whether a KleidiAI kernel for SME has computed an operator."""
    if operator.classes:
        named = any(not {"sme", "sme2"}.isdisjoint(name.split("_")) for name, _ in operator.kernels)
        return named and any(operator.classes[name] > 0 for name in (_SME_CLASS, _STREAMING_CLASS))
    return operator.path.startswith(_PACKED)


def _untold(operator: OperatorCost) -> bool:
    """Whether nothing is known of the kernel: the name is the same in all modes, and nothing was counted."""
    return not operator.classes and operator.path.startswith(_SAME_NAME)


def check(profile: CpuProfile) -> Check:
    """That the kernels of a mode's instruction set ran, and none above it."""
    name = f"kernels with {profile.title}"
    forbidden = _forbidden(profile)
    if forbidden:
        return Check(name, "fail", f"ran although hidden: {forbidden}", "evidence")
    if profile.target.isa == "neon":
        told = "no instruction of class SME in the whole process" if profile.sme_instructions == 0 else ""
        return Check(name, "pass", told or "no operator on a packed path", "evidence")
    candidates = heavy(profile)
    used = [operator for operator in candidates if uses_sme(operator)]
    if not candidates:
        return Check(name, "not run", "the program has no convolution and no GEMM", "evidence")
    if not used and any(map(_untold, candidates)):
        why = f"names of {_SAME_NAME} operators do not tell; an emulator, which sees functions, does"
        return Check(name, "not run", why, "evidence")
    detail = f"{len(used)} of {len(candidates)} convolutions and GEMMs ran KleidiAI's kernels for SME"
    if profile.target.isa == "sme2" and used and not _names_sme2(profile, used):
        return Check(name, "fail", f"{detail}, none of them for SME2", "evidence")
    return Check(name, "pass" if used else "fail", detail, "evidence")


def _names_sme2(profile: CpuProfile, used: Sequence[OperatorCost]) -> bool:
    """Whether one of the kernels is for SME2; on hardware names do not tell."""
    if profile.sme_instructions is None:
        return True
    return any("sme2" in name.split("_") for operator in used for name, _ in operator.kernels)


def _forbidden(profile: CpuProfile) -> str:
    """What ran above the mode's instruction set, "" for nothing."""
    if profile.target.isa == "sme2":
        return ""
    if profile.target.isa == "sme":
        return ", ".join(name for name in profile.sme_kernels if "sme2" in name.split("_"))
    if profile.sme_instructions:
        return (
            f"{profile.sme_instructions:,} instructions of class SME {', '.join(profile.sme_kernels)}".strip()
        )
    return ", ".join(operator.name for operator in heavy(profile) if uses_sme(operator))


def rows(profiles: Sequence[CpuProfile]) -> list[dict[str, Any]]:
    """A row for each convolution and GEMM: path, cost, SME instructions and kernel by mode.

    Args:
        profiles: modes of one program; they execute the same operators in the same order.
    """
    lists = [heavy(profile) for profile in profiles]
    if len({len(operators) for operators in lists}) != 1:  # the modes were lowered into different operators
        lists, profiles = lists[:1], profiles[:1]
    return [_row(operators, profiles) for operators in zip(*lists, strict=True)]


def _row(operators: Sequence[OperatorCost], profiles: Sequence[CpuProfile]) -> dict[str, Any]:
    row: dict[str, Any] = {"operator": operators[0].name}
    for operator, profile in zip(operators, profiles, strict=True):
        title = profile.title
        row[f"{title} path"] = operator.path
        row[f"{title} {profile.unit}"] = operator.cost
        if operator.classes:
            row[f"{title} class SME"] = operator.classes[_SME_CLASS]
            row[f"{title} kernel"] = operator.kernels[0][0] if operator.kernels else "XNNPACK, unnamed"
    return row

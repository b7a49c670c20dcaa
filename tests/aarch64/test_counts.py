# SPDX-License-Identifier: Apache-2.0
"""Categories by identity, sums that add up, and what counts as proof that SME ran or did not."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest

from fvp.aarch64 import profile as profile_of
from fvp.aarch64.runner import Ended
from fvp.aarch64.trace import Trace
from report import kernel_evidence
from report.categories import CONVOLUTION, ELEMENTWISE, GEMM, MOVEMENT, OTHER, category_of, parse_name
from report.cortex_a import TARGETS, find_cpu_target, find_cpu_targets
from report.cpu_profile import CpuProfile, OperatorCost, category_rows
from report.errors import RunFailed, UsageError
from report.etdump import Call, EtdumpError, Span, read

SME2, SME, NEON = (TARGETS[f"cortex-a-{isa}"] for isa in ("sme2", "sme", "neon"))
MOPA2 = "kai_kernel_matmul_clamp_f32_f32p2vlx1_f32p2vlx1biasf32_sme2_mopa"
MOPA1 = "kai_kernel_matmul_clamp_f32_f32p2vlx1_f32p2vlx1b_2vlx2vl_sme_mopa"
PACK = "kai_run_lhs_pack_f32p2vlx1_f32_sme"


@pytest.mark.parametrize(
    ("name", "category", "path"),
    [
        ("Convolution (NHWC, PF32) IGEMM #1", CONVOLUTION, "PF32"),
        ("Convolution (NHWC, F32) DWConv #12", CONVOLUTION, "F32"),
        ("Fully Connected (NC, QD8, F32, QC8W) GEMM #2", GEMM, "QD8, F32, QC8W"),
        ("Batch Matrix Multiply (NC, F16) GEMM #1", GEMM, "F16"),
        ("Transpose (ND, X32) #2", MOVEMENT, "X32"),
        ("Static Reshape (NC) #1", MOVEMENT, ""),
        ("Add (ND, QS8) #1", ELEMENTWISE, "QS8"),
        ("Mean (ND) Reduce2 #1", OTHER, ""),
        ("Softmax (NC, F32) #1", OTHER, "F32"),
        ("Convolution Transpose Add (ND, F32) #1", OTHER, "F32"),  # parts of it are in the table, it is not
        ("Convolution", CONVOLUTION, ""),
        ("convolution (NHWC, F32) #1", OTHER, "F32"),
    ],
)
def test_categories_are_looked_up_by_the_whole_identity(name: str, category: str, path: str) -> None:
    assert category_of(name, delegated=True) == category
    assert parse_name(name).path == path
    assert category_of(name, delegated=False) == OTHER


def operator(name: str, cost: int, sme: int = 0, *kernels: str) -> OperatorCost:
    return OperatorCost(name, True, cost, {"sme": sme, "sve": 0}, tuple((kernel, 1) for kernel in kernels))


def profile(*operators: OperatorCost, target=SME2, sme: int = 0, kernels: tuple[str, ...] = ()) -> CpuProfile:
    inference = sum(o.cost for o in operators) + 7
    stages = (("set-up", 50), ("this inference", inference))
    return CpuProfile(target, "emulated-count", operators, inference, stages, kernels, sme)


WITH_SME2 = profile(
    operator("Convolution (NHWC, PF32) IGEMM #1", 100, 20, MOPA2, PACK),
    operator("Transpose (ND, X32) #1", 30),
    sme=20,
    kernels=(MOPA2, PACK),
)
WITH_NEON = profile(
    operator("Convolution (NHWC, F32) IGEMM #1", 400), operator("Transpose (ND, X32) #1", 30), target=NEON
)


def test_categories_add_up_to_the_inference_and_stages_to_the_process() -> None:
    sums = WITH_SME2.by_category()
    assert (sums[CONVOLUTION], sums[MOVEMENT], sums[OTHER]) == (100, 30, 7)
    assert sum(sums.values()) == WITH_SME2.inference and WITH_SME2.whole == 187
    rows = category_rows([WITH_SME2, WITH_NEON])
    assert rows[0]["NEON / SME2"] == "4.00" and rows[-1]["NEON"] == 437
    assert sum(row["SME2"] for row in rows[:-1]) == rows[-1]["SME2"]


def test_both_modes_as_they_should_be_pass() -> None:
    assert kernel_evidence.check(WITH_SME2).result == "pass"
    assert kernel_evidence.check(WITH_NEON).result == "pass"
    assert kernel_evidence.rows([WITH_SME2, WITH_NEON])[0]["SME2 kernel"] == MOPA2


def test_missing_kernels_fail() -> None:
    absent = dataclasses.replace(WITH_NEON, target=SME2)
    assert kernel_evidence.check(absent).result == "fail"
    only_sme = profile(operator("Convolution (NHWC, PF32) IGEMM #1", 9, 2, MOPA1, PACK), sme=2)
    assert "none of them for SME2" in kernel_evidence.check(only_sme).detail
    assert kernel_evidence.check(dataclasses.replace(only_sme, target=SME)).result == "pass"
    unnamed = profile(operator("Convolution (NHWC, PF32) IGEMM #1", 9, 2), sme=2)
    assert kernel_evidence.check(unnamed).result == "fail"


def test_a_kernel_of_streaming_sve_counts_by_its_name_and_its_instructions() -> None:
    name, kernel = "Fully Connected (NC, PF16) GEMM #1", "kai_kernel_matmul_clamp_f16_1x8vl_sme_mla"
    single_row = OperatorCost(name, True, 700, {"sme": 0, "sve": 300}, ((kernel, 344),))
    assert kernel_evidence.uses_sme(single_row)
    assert not kernel_evidence.uses_sme(dataclasses.replace(single_row, kernels=()))
    assert not kernel_evidence.uses_sme(dataclasses.replace(single_row, classes={"sme": 0, "sve": 0}))


def test_kernels_that_were_to_be_hidden_fail() -> None:
    assert kernel_evidence.check(dataclasses.replace(WITH_SME2, target=NEON)).result == "fail"
    assert kernel_evidence.check(dataclasses.replace(WITH_SME2, target=SME)).result == "fail"
    assert kernel_evidence.check(dataclasses.replace(WITH_NEON, sme_instructions=1)).result == "fail"


def test_a_program_without_convolution_or_gemm_proves_nothing() -> None:
    assert kernel_evidence.check(profile(operator("Add (ND, F32) #1", 3))).result == "not run"


def test_targets_have_an_alias_and_do_not_mix_with_npus() -> None:
    assert find_cpu_target("cortex-a") is SME2
    assert find_cpu_targets(["cortex-a-neon,cortex-a", "cortex-a-sme2"]) == [NEON, SME2]
    assert find_cpu_targets(["ethos-u85"]) == []
    with pytest.raises(UsageError, match="did you mean cortex-a-neon"):
        find_cpu_target("cortex-a-neo")
    with pytest.raises(UsageError, match="beside cortex-a"):
        find_cpu_targets(["cortex-a", "ethos-u55-128"])


def delegate_call(*edges: int, end: int) -> Call:
    """A delegate that starts at call 10 of the clock, with operators between `edges`."""
    parts = [Span("Add (ND, F32) #1", a * 1000, b * 1000, 0) for a, b in pairwise(edges)]
    return Call(Span("DELEGATE_CALL", 10_000, end * 1000, 0), True, tuple(parts))


def test_operators_of_one_or_more_stages_lie_one_call_later_than_they_tell() -> None:
    counting = profile_of._Counting(Ended((), "", ()), Trace((), ()), SME2, [])
    assert counting._delegate_shift(delegate_call(11, 12, 14, 15, end=17)) == 1
    for edges, end in (((11, 12, 14), 15), ((12, 13, 14), 16), ((11, 12, 14), 17)):
        with pytest.raises(RunFailed, match="not where they were expected"):
            counting._delegate_shift(delegate_call(*edges, end=end))


@pytest.mark.parametrize("data", [b"", b"not an ETDump at all", b"\x0c\0\0\0ED00" + bytes(8)])
def test_a_damaged_etdump_is_one_error(data: bytes) -> None:
    with pytest.raises(EtdumpError):
        read(data)

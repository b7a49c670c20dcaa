# SPDX-License-Identifier: Apache-2.0
"""Differences that are the compiler's or a matter of interpretation, recognised by rule.

K1  U55/U65  ARITHMETIC_RIGHT_SHIFT without rounding: Vela asks for a rounding that these NPUs lack, and
             gets "half up"; results are one too high or right
K2  U55/U65  RESIZE nearest with unequal numerators: Vela upscales both axes by the larger one
K3  U55/U65  CAST to a narrower type saturates where TOSA wraps; right for values in range
K4  all      RESCALE with inexact rounding: the reference computes in floating point; tosa_verify passes ours
K5  U85      AVG_POOL2D of several images by sums: Vela places an image's sums beyond the arena
K6  U85      MATMUL and per-channel RESCALE: only channel 0's scale reaches the stream
K7  U55/U65  bias of a 16-bit convolution beyond 40 bits: Vela cuts it to 40
K8  U55/U65  REDUCE_SUM over the width of several images, RESCALE and CLAMP: Vela gives the operation the
             clamp's shape: several channels deep, which a sum over depth cannot have, and as wide as one
             column, so that the rest of the input is never read, whatever an NPU makes of the depth
K9  U65-512  CONV3D with a window that lies in the padding alone: Vela makes the bias's scale stream for the
             first of the two cores only, and tells the second one length 0. SCALE1_BASE is what an earlier
             operation left. Reading there gives the right bias if the convolution of the other slices came
             before (padding behind), another channel's if not (padding in front)

A rule looks at the graph and at the wrong values; a test's name plays no part.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from npu.config import Family, npu_config
from npu.errors import BusError, NpuError, StreamError, WeightStreamError
from tests.conformance.cases import Case
from tests.conformance.tosa_graph import BINARIES, Graph

_U5X = frozenset({Family.U55, Family.U65})
_BITS = {"INT8": 8, "INT16": 16, "INT32": 32, "INT48": 48}


@dataclass(frozen=True)
class Evidence:
    """What a rule may look at: `got` is None if execution ended with `error`."""

    case: Case
    graph: Graph
    got: Sequence[np.ndarray] | None
    want: Sequence[np.ndarray]
    error: NpuError | None

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Flat int64 (got, want) of every output."""
        return [
            (a.reshape(-1).astype(np.int64), b.reshape(-1).astype(np.int64))
            for a, b in zip(self.got or (), self.want, strict=False)
        ]


def known_class(
    case: Case,
    npu: str,
    got: Sequence[np.ndarray] | None,
    want: Sequence[np.ndarray],
    error: NpuError | None,
) -> str:
    """Name of the class, "" if no rule explains the result."""
    evidence = Evidence(case, Graph(case.graph_path), got, want, error)
    family = npu_config(npu).family
    for name, (families, rule) in RULES.items():
        if family in families and (got is not None or error is not None) and rule(evidence):
            return name
    return ""


def _floor_shift(evidence: Evidence) -> bool:
    shifts = list(evidence.graph.operators("ARITHMETIC_RIGHT_SHIFT"))
    plain = [op for op in shifts if not op["attribute"].get("round", False)]
    return (
        bool(plain) and all(np.isin(a - b, (0, 1)).all() for a, b in evidence.pairs()) and bool(evidence.got)
    )


def _unequal_resize(evidence: Evidence) -> bool:
    for op in evidence.graph.operators("RESIZE"):
        shape = next(s for s in evidence.graph.block["shapes"] if s["name"] == op["inputs"][1])
        scale = np.array(shape["data"], np.uint8).view("<i8")
        if op["attribute"]["mode"] == "NEAREST" and scale[0] != scale[2] and evidence.got:
            return True
    return False


def _narrowing_cast(evidence: Evidence) -> bool:
    """Exactly the saturated input."""
    casts = list(evidence.graph.operators("CAST"))
    if len(casts) != 1 or not evidence.got:
        return False
    source, target = (evidence.graph.tensor(casts[0][side][0])["type"] for side in ("inputs", "outputs"))
    if _BITS.get(target, 64) >= _BITS.get(source, 0):
        return False
    limit = 1 << (_BITS[target] - 1)
    values = evidence.case.inputs()[0].reshape(-1).astype(np.int64)
    return np.array_equal(evidence.pairs()[0][0], values.clip(-limit, limit - 1))


def _inexact_rescale(evidence: Evidence) -> bool:
    """tosa_verify, which knows the bounds of this mode, accepts every output."""
    tensors = evidence.case.description.get("meta", {}).get("compliance", {}).get("tensors", {})
    if not evidence.got or not any(t.get("mode") == "RESCALE_INEXACT" for t in tensors.values()):
        return False
    evidence.case.run_reference("--precise_mode=1")
    try:
        return all(_verified(evidence, number) for number in range(len(evidence.got)))
    finally:
        for name in evidence.case.description["ofm_file"]:
            (evidence.case.folder / name).unlink(missing_ok=True)
        evidence.case.run_reference()


def _verified(evidence: Evidence, number: int) -> bool:
    case, description = evidence.case, evidence.case.description
    reference = case.folder / description["ofm_file"][number]
    ours = case.folder / f"ours-{number}.npy"
    np.save(
        ours,
        (evidence.got or ())[number].reshape(evidence.want[number].shape).astype(np.load(reference).dtype),
    )
    command = [BINARIES / "tosa_verify", "--test_desc", case.folder / "desc.json"]
    command += ["--imp_result_file", ours, "--ref_result_file", reference]
    command += ["--ofm_name", description["ofm_name"][number]]
    bounds = reference.with_name(f"bounds_{reference.name}")
    if bounds.exists():
        command += ["--bnd_result_file", bounds]
    done = subprocess.run(list(map(str, command)), capture_output=True)
    ours.unlink()
    return done.returncode == 0


def _sums_beyond_arena(evidence: Evidence) -> bool:
    return isinstance(evidence.error, BusError) and any(
        evidence.graph.tensor(op["inputs"][0])["shape"][0] > 1
        and (max(op["attribute"]["kernel"]) > 8 or max(op["attribute"]["stride"]) > 3)
        for op in evidence.graph.operators("AVG_POOL2D")
    )


def _per_channel_matmul(evidence: Evidence) -> bool:
    """Channel 0 of the result is right."""
    scales = [op for op in evidence.graph.operators("RESCALE") if op["attribute"].get("per_channel")]
    if not scales or not any(True for _ in evidence.graph.operators("MATMUL")) or not evidence.got:
        return False
    (got, want), shape = evidence.pairs()[0], evidence.want[0].shape
    return np.array_equal(got.reshape(shape)[..., 0], want.reshape(shape)[..., 0])


def _wide_bias(evidence: Evidence) -> bool:
    kinds = ("CONV2D", "DEPTHWISE_CONV2D", "CONV3D", "TRANSPOSE_CONV2D")
    biases = [
        evidence.graph.constant(op["inputs"][2])
        for kind in kinds
        for op in evidence.graph.operators(kind)
        if evidence.graph.tensor(op["inputs"][2])["type"] == "INT48"
    ]
    return bool(evidence.got) and any(np.abs(bias).max() >= 1 << 39 for bias in biases)


def _one_core_s_bias(evidence: Evidence) -> bool:
    """The pool that stands for the empty window finds no scales for the second core."""
    error = evidence.error
    return (
        any(True for _ in evidence.graph.operators("CONV3D"))
        and isinstance(error, WeightStreamError)
        and error.opcode == "OP_POOL"
    )


def _clamped_sum(evidence: Evidence) -> bool:
    """The stream asks for a sum over depth with a result of more than one channel."""
    sums = [op for op in evidence.graph.operators("REDUCE_SUM") if op["attribute"].get("axis", 0) == 2]
    batched = any(evidence.graph.tensor(op["inputs"][0])["shape"][0] > 1 for op in sums)
    clamped = any(True for _ in evidence.graph.operators("CLAMP"))
    error = evidence.error
    return batched and clamped and isinstance(error, StreamError) and error.opcode == "OP_POOL"


RULES: Mapping[str, tuple[frozenset[Family], Callable[[Evidence], bool]]] = MappingProxyType(
    {
        "K1": (_U5X, _floor_shift),
        "K2": (_U5X, _unequal_resize),
        "K3": (_U5X, _narrowing_cast),
        "K4": (frozenset(Family), _inexact_rescale),
        "K5": (frozenset({Family.U85}), _sums_beyond_arena),
        "K6": (frozenset({Family.U85}), _per_channel_matmul),
        "K7": (_U5X, _wide_bias),
        "K8": (_U5X, _clamped_sum),
        "K9": (frozenset({Family.U65}), _one_core_s_bias),
    }
)

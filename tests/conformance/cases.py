# SPDX-License-Identifier: Apache-2.0
"""One operator test: reference result, compilation by Vela, execution, comparison."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npu.config import Family, npu_config
from npu.container import TensorSpec, load_raw_npz
from npu.errors import NotModelled, NpuError
from npu.machine import execute
from tests.conformance.tosa_graph import BINARIES, SCHEMA

SYSTEMS: Mapping[Family, tuple[str, str]] = {
    Family.U55: ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    Family.U65: ("Ethos_U65_High_End", "Shared_Sram"),
    Family.U85: ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
}
"""Vela's system configuration and memory mode for each family."""
_COMPILE_SECONDS = 120


@dataclass(frozen=True)
class Verdict:
    """What became of one test on one NPU.

    Attributes:
        status: exact, different, rejected (by Vela), not modelled, error, or no reference.
        known: the class of a difference that is not the model's (K1 to K9), else "".
        detail: first difference, or the error's text.
    """

    test: str
    op: str
    npu: str
    status: str
    known: str = ""
    detail: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


class Case:
    """A test's folder: desc.json, the graph, inputs, and the reference's results once they are there."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.description: dict[str, Any] = json.loads((folder / "desc.json").read_text())
        self.graph_path = folder / self.description["tosa_file"]

    def inputs(self) -> list[np.ndarray]:
        return [np.load(self.folder / name) for name in self.description["ifm_file"]]

    def expected(self) -> list[np.ndarray] | None:
        """Results of the reference model; None when it does not run the graph."""
        paths = [self.folder / name for name in self.description["ofm_file"]]
        if not all(path.exists() for path in paths):
            self.run_reference()
        return [np.load(path) for path in paths] if all(path.exists() for path in paths) else None

    def run_reference(self, *options: str) -> None:
        """Let the reference model write its results into the folder."""
        command = [BINARIES / "tosa_reference_model", f"--test_desc={self.folder / 'desc.json'}"]
        command += [f"--operator_fbs={SCHEMA}", "--tosa_level=EIGHTK", *options]
        subprocess.run(list(map(str, command)), capture_output=True, timeout=_COMPILE_SECONDS)


def compile_graph(graph: Path, npu: str, folder: Path) -> Path | None:
    """Vela's raw result for a TOSA file, None if Vela refuses it; both are remembered in the folder.

    Vela runs in a forked child with a time limit: its back end can end a process.
    """
    result, refusal = folder / f"{graph.stem}_vela.npz", folder / "refused.txt"
    if not (result.exists() or refusal.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        status = _forked_vela(graph, npu, folder)
        if status or not result.exists():
            result.unlink(missing_ok=True)
            refusal.write_text(f"status {status}\n")
    return result if result.exists() else None


def _forked_vela(graph: Path, npu: str, folder: Path) -> int:
    import ethosu.vela.vela  # imported once, in the parent  # noqa: F401

    child = os.fork()
    if child == 0:
        _child(graph, npu, folder)
    _, status = os.waitpid(child, 0)
    return status


def _child(graph: Path, npu: str, folder: Path) -> None:
    from ethosu.vela import vela

    status = 1
    try:
        signal.alarm(_COMPILE_SECONDS)
        sink = os.open(folder / "vela.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        vela.main(vela_arguments(graph, npu, folder))
        status = 0
    finally:
        os._exit(status)


def vela_arguments(graph: Path, npu: str, folder: Path) -> list[str]:
    """Command line of the compiler."""
    system, memory = SYSTEMS[npu_config(npu).family]
    return [
        str(graph),
        f"--accelerator-config={npu}",
        "--config=Arm/vela.ini",
        f"--system-config={system}",
        f"--memory-mode={memory}",
        "--output-format=raw",
        f"--output-dir={folder}",
    ]


def run_compiled(result: Path, npu: str, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs of the NPU model.

    Raises:
        NpuError: the stream is refused or fails.
    """
    binary = load_raw_npz(result)
    stored = [_stored(array, spec) for array, spec in zip(inputs, binary.inputs, strict=True)]
    return execute(binary, npu_config(npu), stored)


def _stored(array: np.ndarray, spec: TensorSpec) -> np.ndarray:
    """Elements as the compiled network takes them: a Boolean is a byte, 48 bits are eight bytes."""
    return array.astype(f"<i{spec.elem_size}")


def first_difference(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> str:
    """Where results differ first and how often, "" if they are equal."""
    if len(got) != len(want):
        return f"{len(got)} outputs, {len(want)} expected"
    for number, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if ours.size != theirs.size:
            return f"output {number}: {ours.size} elements, {theirs.size} expected"
        a, b = ours.reshape(-1).astype(np.int64), theirs.reshape(-1).astype(np.int64)
        wrong = np.flatnonzero(a != b)
        if wrong.size:
            place = tuple(int(i) for i in np.unravel_index(wrong[0], theirs.shape))
            return (
                f"output {number}: {wrong.size} of {a.size}, first {place}: {a[wrong[0]]}, not {b[wrong[0]]}"
            )
    return ""


def judge(case: Case, test: str, op: str, npu: str, work: Path) -> Verdict:
    """Compile, execute and compare one test on one NPU."""
    from tests.conformance.known import known_class

    expected = case.expected()
    if expected is None:
        return Verdict(test, op, npu, "no reference")
    compiled = compile_graph(case.graph_path, npu, work)
    if compiled is None:
        return Verdict(test, op, npu, "rejected")
    inputs = case.inputs()
    try:
        got = run_compiled(compiled, npu, inputs)
    except NotModelled as error:
        return Verdict(test, op, npu, "not modelled", detail=str(error))
    except NpuError as error:
        known = known_class(case, npu, None, expected, error)
        return Verdict(test, op, npu, "error", known, f"{type(error).__name__}: {error}")
    detail = first_difference(got, expected)
    if not detail:
        return Verdict(test, op, npu, "exact")
    return Verdict(test, op, npu, "different", known_class(case, npu, got, expected, None), detail)

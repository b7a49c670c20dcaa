# SPDX-License-Identifier: Apache-2.0
"""What `armdeploy verify` finds out about a file: its networks, its bundled cases, its layers.

A verdict comes as plain data: every writer is a function of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fvp import bisect
from fvp.bundle_check import MAX_STEPS, check_bundle
from fvp.network_check import check_network
from fvp.oracle import Oracle, oracle_for, seeded_inputs
from npu.config import from_config_word
from npu.container import VelaBin, load_raw_npz, parse_velabin
from npu.errors import NpuError
from npu.stream import parse
from report import bundle, compile_report, pte, vela_debug
from report.compile_report import CompileReport
from report.errors import RunFailed, UsageError

SCHEMA_VERSION = 1
ETHOS_U = "EthosUBackend"


@dataclass(frozen=True)
class Request:
    """How much to compare: `count` sets of inputs from `seed` on, and each tensor in memory if `bisect`.

    `bundle_steps` is how many quantisation steps a bundled output may be away.
    """

    count: int = 10
    seed: int = 0
    bisect: bool = False
    bundle_steps: int = MAX_STEPS


@dataclass(frozen=True)
class Subject:
    """One network with its oracle.

    Attributes:
        graph: the TOSA graph it was compiled from, None if it was none.
        queue: Vela's debug database of it, None where it was not kept.
        origins: what the compile report says of the graph's operators.
    """

    name: str
    network: VelaBin
    oracle: Oracle
    graph: Path | None = None
    queue: Mapping[int, vela_debug.QueuedOperation] | None = None
    origins: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Subjects:
    """What there is to verify in one file.

    Attributes:
        program: of a .pte or .bpte; `cases` are bundled with it.
        losses: what each layer lost by quantisation, as the compile report says; None if it does not.
    """

    name: str
    networks: Sequence[Subject]
    program: pte.Program | None = None
    cases: Sequence[bundle.BundledCase] = ()
    losses: Sequence[Mapping[str, Any]] | None = field(default=None)


# --- files --------------------------------------------------------------------------------------------------


def program_subjects(path: Path) -> Subjects:
    """Of a .pte or .bpte: each delegate with the TOSA graph that Vela got, and what is bundled.

    Raises:
        UsageError: unreadable or damaged, or there is nothing in it to compare with.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError("cannot read the program", where=str(path), why=str(error.strerror)) from error
    program, cases, report = (
        pte.parse(data, str(path)),
        bundle.cases(data, str(path)),
        compile_report.find(path),
    )
    delegates = [delegate for method in program.methods for delegate in method.delegates]
    foreign = sorted({d.backend for d in delegates} - {ETHOS_U})
    if foreign or not delegates:
        raise UsageError(
            "no program for an Ethos-U",
            where=str(path),
            why=f"its delegates are {', '.join(foreign)}'s" if foreign else "it has no delegate",
        )
    if report is None and not cases:
        why = "the compile report beside it tells which TOSA graph Vela got"
        hint = "give the .pte where it was compiled, or a .bpte"
        raise UsageError("no compile report", where=str(path), why=why, hint=hint)
    networks = [_delegate(path, report, n, d, program) for n, d in enumerate(delegates)] if report else []
    losses = report.data["quantization"].get("layers") if report else None
    return Subjects(path.name, networks, program, cases, losses)


def _delegate(
    path: Path, report: CompileReport, number: int, delegate: pte.Delegate, program: pte.Program
) -> Subject:
    described = report.data["delegates"][number]
    database, graph = report.path.parent / described["debug_database"], report.tosa[number]
    try:
        network = parse_velabin(delegate.blob, program.named_data)
    except NpuError as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"damaged delegate {number}", where=str(path), why=why) from error
    queue = vela_debug.read(database) if database.is_file() else None
    return Subject(f"delegate {number}", network, oracle_for(graph), graph, queue, described["origins"])


def raw_subjects(path: Path, reference: Path) -> Subjects:
    """Of Vela's raw result (.npz) and the .tosa or .tflite it was made of.

    Raises:
        UsageError: one of them cannot be read.
    """
    oracle = oracle_for(reference)
    try:
        return Subjects(path.name, [Subject(path.name, load_raw_npz(path), oracle)])
    except NpuError as error:
        raise UsageError("cannot read the network", where=str(path), why=str(error)) from error


def compiled_subjects(path: Path, oracle: Oracle, network: VelaBin, debug_database: Path) -> Subjects:
    """Of a .tosa or .tflite that has been compiled to `network`."""
    queue = vela_debug.read(debug_database) if debug_database.is_file() else None
    graph = path if path.suffix == ".tosa" else None
    return Subjects(path.name, [Subject(path.name, network, oracle, graph, queue)])


# --- verdicts -----------------------------------------------------------------------------------------------


def verify(subjects: Subjects, request: Request, folder: Path) -> dict[str, Any]:
    """Compile nothing, execute and compare everything; the verdict as JSON-ready data.

    Its `result` is exact only when all is equal; close when only bundled outputs differ, by no more than
    the quantisation steps that they may.

    Args:
        folder: for files on the way.

    Raises:
        UsageError: asked to bisect what cannot be.
        RunFailed, EnvironmentError_: the NPU model or the oracle has no answer.
    """
    networks = [_network(subject, request, folder) for subject in subjects.networks]
    bundled = _bundled(subjects, request.bundle_steps)
    found = {part["result"] for part in (*networks, *bundled)}
    return {
        "file": subjects.name,
        "result": next(r for r in ("different", "close", "exact") if r in found),
        "networks": networks,
        "bundled": bundled,
        "quantization": _layers(subjects.losses, networks) if request.bisect else None,
    }


def _network(subject: Subject, request: Request, folder: Path) -> dict[str, Any]:
    seeds = range(request.seed, request.seed + request.count)
    sets = [seeded_inputs(subject.oracle.inputs, seed) for seed in seeds]
    try:
        check = check_network(subject.network, subject.oracle, sets, folder, subject.queue or {})
        layers = _bisected(subject, sets[0]) if request.bisect else []
    except NpuError as error:
        what = "the NPU model refuses the network"
        raise RunFailed(what, where=subject.name, why=str(error)) from error
    different = check.mismatches or any(layer["difference"] for layer in layers)
    return {
        "name": subject.name,
        "result": "different" if different else "exact",
        **dataclasses.asdict(check),
        "mismatches": [dataclasses.asdict(m) | {"text": str(m)} for m in check.mismatches],
        "layers": layers,
    }


def _bisected(subject: Subject, inputs: Sequence[Any]) -> list[dict[str, Any]]:
    """The tensors in memory, each with the place in the model that it comes from."""
    if subject.graph is None or subject.queue is None:
        raise UsageError(
            "cannot bisect",
            where=subject.name,
            why="it takes a TOSA graph and Vela's debug database",
            hint="give a model, a .tosa, or a .pte with its compile report and artefacts",
        )
    origins = {origin["tosa"]: origin for origin in subject.origins}
    layers = bisect.bisect(subject.network, subject.graph.read_bytes(), inputs, subject.queue)
    return [_layer(layer, origins.get(layer.tensor, {})) for layer in layers]


def _layer(layer: bisect.Layer, origin: Mapping[str, Any]) -> dict[str, Any]:
    text = layer.reason or (str(layer.difference) if layer.difference else "equal")
    place = {key: origin.get(key, "") for key in ("node", "module_path", "line")}
    return dataclasses.asdict(layer) | place | {"text": text}


def _bundled(subjects: Subjects, allowed: int) -> list[dict[str, Any]]:
    if subjects.program is None or not subjects.cases:
        return []
    delegates = [delegate for method in subjects.program.methods for delegate in method.delegates]
    try:
        blob = parse_velabin(delegates[0].blob, subjects.program.named_data)
        config = from_config_word(parse(blob.cmd_data).config_word)
    except NpuError as error:
        raise UsageError("damaged delegate 0", where=subjects.name, why=str(error)) from error
    outputs = check_bundle(subjects.program, subjects.cases, config, subjects.name, allowed)
    return [dataclasses.asdict(o) | {"result": o.result, "text": str(o)} for o in outputs]


def _layers(
    losses: Sequence[Mapping[str, Any]] | None, networks: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]] | None:
    """Each layer's loss by quantisation beside what the device made of its tensors; None if not measured."""
    if losses is None:
        return None
    tensors = [layer for network in networks for layer in network["layers"]]
    return [dict(loss) | {"device": _on_device(loss["nodes"], tensors)} for loss in losses]


def _on_device(nodes: Sequence[str], tensors: Sequence[Mapping[str, Any]]) -> str:
    """equal or different where tensors of these nodes were compared, else why there is nothing to say."""
    own = [tensor for tensor in tensors if tensor["node"] in nodes]
    if any(tensor["difference"] for tensor in own):
        return "different"
    if any(not tensor["reason"] for tensor in own):
        return "equal"
    return own[-1]["reason"] if own else "no tensor of its own"

# SPDX-License-Identifier: Apache-2.0
"""``armdeploy verify FILE``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aot import artefact
from aot.targets import find_targets
from aot.vela_config import resolve_settings
from aot.vela_file import SUFFIXES, compile_file
from fvp import bisect
from fvp import verify as checks
from npu.container import VelaBin, load_raw_npz
from npu.errors import ContainerError, NpuError
from report import vela_debug, verify_text
from report.errors import OutputMismatch, RunFailed, UsageError


@dataclasses.dataclass(frozen=True)
class _Case:
    """One network with its oracle; `graph` is the TOSA graph it was compiled from, if it was one."""

    name: str
    network: VelaBin
    oracle: checks.Oracle
    graph: Path | None
    queue: Mapping[int, vela_debug.QueuedOperation] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help=".tosa or .tflite, which are compiled; .pte; .npz of Vela with --reference",
    )
    parser.add_argument("-t", "--target", metavar="NPU", help="what to compile for (ethos-u85-256)")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="what the .npz was compiled from")
    parser.add_argument("--system_config", metavar="NAME", help="Vela's system configuration")
    parser.add_argument("--memory_mode", metavar="NAME", help="Vela's memory mode")
    parser.add_argument("--config", metavar="INI", help="Vela's configuration file")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="sets of random inputs (10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first set (0)")
    parser.add_argument(
        "--bisect", action="store_true", help="compare every tensor in memory; name the first that departs"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Compile, execute, compare; 0 only when every output of every set is equal."""
    if arguments.count < 1:
        raise UsageError("--count must be positive")
    with tempfile.TemporaryDirectory(prefix="armdeploy-verify-") as name:
        documents = [_verify(case, arguments, Path(name)) for case in _cases(arguments, Path(name))]
    text = verify_text.to_text(documents)
    print(json.dumps({"networks": documents}, indent=2) if arguments.json else text)
    wrong = [document["name"] for document in documents if document["result"] != "exact"]
    if wrong:
        error = OutputMismatch(f"{', '.join(wrong)}: not what the reference computes")
        print(f"armdeploy verify: error: {error.one_line()}", file=sys.stderr)
        return error.exit_code
    return 0


def _verify(case: _Case, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """What was compared, as data."""
    sets = [checks.seeded_inputs(case.oracle.inputs, arguments.seed + i) for i in range(arguments.count)]
    try:
        result = checks.verify(case.network, case.oracle, sets, folder, dict(case.queue or {}))
        layers = _bisect(case, sets[0]) if arguments.bisect else []
    except NpuError as error:
        what = "the NPU model refuses the network"
        raise RunFailed(what, where=case.name, why=str(error)) from error
    different = result.mismatches or any(layer.difference for layer in layers)
    return {
        "name": case.name,
        "result": "different" if different else "exact",
        **dataclasses.asdict(result),
        "mismatches": [dataclasses.asdict(m) | {"text": str(m)} for m in result.mismatches],
        "layers": [dataclasses.asdict(layer) | {"text": _told(layer)} for layer in layers],
    }


def _bisect(case: _Case, inputs: Sequence[np.ndarray]) -> list[bisect.Layer]:
    if case.graph is None or case.queue is None:
        raise UsageError(
            "cannot bisect",
            where=case.name,
            why="it takes a TOSA graph and Vela's debug database",
            hint="give a .tosa, or a .pte with its compile report and artefacts",
        )
    return bisect.bisect(case.network, case.graph.read_bytes(), inputs, case.queue)


def _told(layer: bisect.Layer) -> str:
    return layer.reason or (str(layer.difference) if layer.difference else "equal")


def _cases(arguments: argparse.Namespace, folder: Path) -> list[_Case]:
    """What there is to compare, compiled if need be."""
    path: Path = arguments.file
    if path.suffix in (".pte", ".bpte"):
        return _delegates(path)
    oracle = checks.oracle_for(arguments.reference or path)
    if path.suffix == ".npz":
        if arguments.target:
            raise UsageError("--target is for files that are compiled", hint="the .npz names its own")
        return [_Case(path.name, _raw(path), oracle, None, None)]
    if path.suffix not in SUFFIXES:
        raise UsageError(f"cannot compile {path}", why=f"known: {', '.join(SUFFIXES)}, .pte, .npz")
    (target,) = find_targets([arguments.target or "ethos-u85"])
    settings = resolve_settings(target, arguments.system_config, arguments.memory_mode, arguments.config)
    compiled = compile_file(path, target, settings, folder)
    database = compiled.debug_database
    queue = vela_debug.read(database) if database.is_file() else None
    return [_Case(path.name, compiled.network, oracle, path if path.suffix == ".tosa" else None, queue)]


def _delegates(path: Path) -> list[_Case]:
    """The delegates of a program, each with the TOSA graph that Vela got."""
    file = artefact.read(path)
    if file.report is None:
        why = "the compile report beside it tells which TOSA graph Vela got"
        raise UsageError(
            "no compile report", where=str(path), why=why, hint="give the .pte where it was compiled"
        )
    graphs = file.report.tosa
    return [
        _Case(f"delegate {n.number}", n.vela, checks.oracle_for(graphs[n.number]), graphs[n.number], n.queue)
        for n in file.networks
    ]


def _raw(path: Path) -> VelaBin:
    try:
        return load_raw_npz(path)
    except ContainerError as error:
        raise UsageError("cannot read the network", where=str(path), why=error.what) from error

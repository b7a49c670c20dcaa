# SPDX-License-Identifier: Apache-2.0
"""``armdeploy verify FILE``."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from aot.targets import find_targets
from aot.vela_config import resolve_settings
from aot.vela_file import SUFFIXES, compile_file
from fvp import verify as checks
from npu.container import VelaBin, load_raw_npz
from npu.errors import ContainerError, NpuError
from report import vela_debug
from report.errors import OutputMismatch, RunFailed, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help=".tosa or .tflite, or an .npz of Vela with --reference",
    )
    parser.add_argument("-t", "--target", metavar="NPU", help="what to compile for (ethos-u85-256)")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="what the .npz was compiled from")
    parser.add_argument("--system_config", metavar="NAME", help="Vela's system configuration")
    parser.add_argument("--memory_mode", metavar="NAME", help="Vela's memory mode")
    parser.add_argument("--config", metavar="INI", help="Vela's configuration file")
    parser.add_argument("--count", type=int, default=10, metavar="N", help="sets of random inputs (10)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first set (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Compile, execute, compare; 0 only when every output of every set is equal."""
    if arguments.count < 1:
        raise UsageError("--count must be positive")
    with tempfile.TemporaryDirectory(prefix="armdeploy-verify-") as name:
        result = _verify(arguments, Path(name))
    print(json.dumps(_document(result), indent=2) if arguments.json else _text(result))
    if result.mismatches:
        error = OutputMismatch(f"{len(result.mismatches)} of {result.cases} sets of inputs differ")
        print(f"armdeploy verify: error: {error.one_line()}", file=sys.stderr)
        return error.exit_code
    return 0


def _verify(arguments: argparse.Namespace, folder: Path) -> checks.Verification:
    reference = arguments.reference or arguments.file
    oracle = checks.oracle_for(reference)
    sets = [checks.seeded_inputs(oracle.inputs, arguments.seed + i) for i in range(arguments.count)]
    try:
        network, debug = _network(arguments, folder)
        return checks.verify(network, oracle, sets, folder, debug)
    except NpuError as error:
        raise RunFailed(
            "the NPU model refuses the network", where=str(arguments.file), why=str(error)
        ) from error


def _network(arguments: argparse.Namespace, folder: Path) -> tuple[VelaBin, Any]:
    """The network, compiled if need be, with Vela's debug database where there is one."""
    if arguments.file.suffix == ".npz":
        if arguments.target:
            raise UsageError("--target is for files that are compiled", hint="the .npz names its own")
        return _raw(arguments.file), None
    if arguments.file.suffix not in SUFFIXES:
        raise UsageError(f"cannot compile {arguments.file}", why=f"known: {', '.join(SUFFIXES)}, .npz")
    (target,) = find_targets([arguments.target or "ethos-u85"])
    settings = resolve_settings(target, arguments.system_config, arguments.memory_mode, arguments.config)
    compiled = compile_file(arguments.file, target, settings, folder)
    database = compiled.debug_database
    return compiled.network, vela_debug.read(database) if database.is_file() else None


def _raw(path: Path) -> VelaBin:
    try:
        return load_raw_npz(path)
    except ContainerError as error:
        raise UsageError("cannot read the network", where=str(path), why=error.what) from error


def _text(result: checks.Verification) -> str:
    lines = [
        f"{result.target} against {result.oracle}: {result.cases} sets, {result.elements:,} output elements"
    ]
    lines += [str(mismatch) for mismatch in result.mismatches]
    return "\n".join([*lines, f"verify: {'different' if result.mismatches else 'exact'}"])


def _document(result: checks.Verification) -> dict[str, Any]:
    return {"result": "different" if result.mismatches else "exact", **dataclasses.asdict(result)}

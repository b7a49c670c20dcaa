# SPDX-License-Identifier: Apache-2.0
"""``armdeploy profile [FILE]``, and ``armdeploy profile --study RECORD …`` for Cortex-A."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aot import artefact, npu_profile
from aot import compile as aot_compile
from aot.targets import find_targets
from aot.vela_config import resolve_settings
from aot.vela_file import SUFFIXES, compile_file
from report import cpu_study, pmu_trace, profile_text, vela_debug
from report.errors import UsageError
from report.files import write_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options: those of compile, for ``--model``, and its own."""
    parser.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help=".pte, .npz, Vela-compiled .tflite; .tosa and .tflite are compiled; none: compile --model",
    )
    aot_compile.add_compile_options(parser)
    group = parser.add_argument_group("profile")
    group.add_argument(
        "--timing-adapter", metavar="PROFILE", help="memory timing (default: ExecuTorch's for the system)"
    )
    group.add_argument(
        "--clock",
        type=float,
        default=npu_profile.CLOCK_HZ / 1e6,
        metavar="MHZ",
        help="NPU clock for times (1000)",
    )
    group.add_argument(
        "--timing-only",
        action="store_true",
        help="never execute: cycles from the command stream alone (what profile does in any case)",
    )
    group.add_argument(
        "--pmu-trace", type=Path, metavar="TRACE", help="show the times of an FVP's --pmu-trace file instead"
    )
    group.add_argument(
        "--study",
        type=Path,
        nargs="+",
        default=[],
        metavar="RECORD",
        help="tables of Cortex-A runs instead, from what run --json has printed",
    )
    group.add_argument("--perfetto", type=Path, metavar="FILE", help="also write a timeline for Perfetto")
    group.add_argument("-o", "--output", type=Path, default=Path("out"), metavar="DIR", help="folder (out)")
    group.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Compile if need be, estimate, print."""
    if arguments.clock <= 0:
        raise UsageError("--clock must be positive")
    if arguments.file is not None and arguments.model is not None:
        raise UsageError("FILE and --model exclude each other")
    if arguments.study:
        return _study(arguments)
    trace = pmu_trace.read(arguments.pmu_trace) if arguments.pmu_trace else None
    with tempfile.TemporaryDirectory(prefix="armdeploy-profile-") as folder:
        files = [_open(arguments, Path(folder))] if arguments.file else list(_compile(arguments))
    if arguments.json and len(files) > 1:
        raise UsageError("--json prints one profile", hint="give one target")
    for file in files:
        document = npu_profile.profile(file, _wanted(arguments))
        if trace is not None:
            document = pmu_trace.apply(document, trace, arguments.pmu_trace)
        _write_perfetto(arguments.perfetto, profile_text.to_perfetto(document))
        print(json.dumps(document, indent=2) if arguments.json else profile_text.to_text(document))
    return 0


def _study(arguments: argparse.Namespace) -> int:
    if arguments.file is not None or arguments.model is not None:
        raise UsageError("--study takes run records alone")
    groups = [group for path in arguments.study for group in cpu_study.read(path)]
    document = cpu_study.study(groups)
    _write_perfetto(arguments.perfetto, cpu_study.to_perfetto(groups))
    print(json.dumps(document, indent=2) if arguments.json else cpu_study.to_text(document))
    return 0


def _write_perfetto(path: Path | None, timeline: Mapping[str, Any]) -> None:
    if path is not None:
        write_text(path, json.dumps(timeline) + "\n")


def _compile(arguments: argparse.Namespace) -> Any:
    return (artefact.read(path) for path, _ in aot_compile.compile_models(arguments))


def _open(arguments: argparse.Namespace, folder: Path) -> artefact.Artefact:
    """The file, compiled first if it is a graph without an Ethos-U network."""
    path: Path = arguments.file
    if path.suffix not in SUFFIXES:
        return artefact.read(path)
    if path.suffix == ".tflite" and (file := artefact.read(path)).networks:
        return file
    (target,) = find_targets(arguments.target or [aot_compile.DEFAULT_TARGET])
    settings = resolve_settings(target, arguments.system_config, arguments.memory_mode, arguments.config)
    compiled = compile_file(path, target, settings, folder)
    queue = vela_debug.read(compiled.debug_database) if compiled.debug_database.is_file() else None
    network = artefact.Network(0, compiled.network, queue)
    return artefact.Artefact(path, path.read_bytes(), None, None, None, (network,))


def _wanted(arguments: argparse.Namespace) -> npu_profile.Wanted:
    return npu_profile.Wanted(
        arguments.system_config, arguments.memory_mode, arguments.timing_adapter, arguments.clock * 1e6
    )

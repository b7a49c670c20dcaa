# SPDX-License-Identifier: Apache-2.0
"""``armdeploy inspect FILE`` and ``armdeploy inspect --layout MODEL``."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from aot import artefact
from aot import compile as aot_compile
from npu import listing
from npu.errors import NpuError
from report import describe, inspect_text, layout_advice
from report.arguments import Parser
from report.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help=".pte, .bpte, .tflite, or Vela's raw result (.npz); with --layout a .pte or what "
        "compile --model takes",
    )
    parser.add_argument("--commands", action="store_true", help="disassemble every command")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    parser.add_argument(
        "--node-data", type=Path, metavar="FILE", help="write MACs by TOSA operator for Model Explorer"
    )
    _add_layout_arguments(parser.add_argument_group("layout (Cortex-A)"))


def _add_layout_arguments(group: Any) -> None:
    group.add_argument(
        "--layout",
        action="store_true",
        help="where XNNPACK's partitions are split, which transposes that costs, and what to do",
    )
    group.add_argument("--dtype", help="of a model: int8 (default), fp32, fp16 or int8-dynamic")
    aot_compile.add_layout_arguments(group)


def run(arguments: argparse.Namespace) -> int:
    """Read, describe, print."""
    if arguments.layout:
        return _run_layout(arguments)
    if given := _layout_options(arguments):
        raise UsageError(f"{given[0]} goes with --layout", hint="add --layout")
    document = _document(artefact.read(arguments.file), commands=arguments.commands)
    if arguments.node_data is not None:
        text = json.dumps(inspect_text.node_data(document), indent=2) + "\n"
        arguments.node_data.write_text(text, encoding="utf-8")
    print(json.dumps(document, indent=2) if arguments.json else inspect_text.to_text(document))
    return 0


def _layout_options(arguments: argparse.Namespace) -> list[str]:
    """The options in use that say how to compile."""
    names = ("dtype", "fix_layout", "approximate_gelu", "keep_out")
    return [f"--{name.replace('_', '-')}" for name in names if getattr(arguments, name)]


def _run_layout(arguments: argparse.Namespace) -> int:
    if arguments.commands or arguments.node_data is not None:
        raise UsageError("--commands and --node-data do not go with --layout")
    if arguments.file.suffix == ".pte":
        if given := _layout_options(arguments):
            raise UsageError(
                f"{given[0]} is for a model", where=str(arguments.file), why="it is compiled already"
            )
        document = layout_advice.document(arguments.file)
    else:
        with tempfile.TemporaryDirectory(prefix="armdeploy-") as folder:
            document = layout_advice.document(_compiled(arguments, folder))
    print(json.dumps(document, indent=2) if arguments.json else layout_advice.to_text(document))
    return 0


def _compiled(arguments: argparse.Namespace, folder: str) -> Path:
    """The model compiled for a Cortex-A, in `folder`."""
    parser = Parser()
    aot_compile.add_arguments(parser)
    words = ["--model", str(arguments.file), "--target", "cortex-a", "--output", folder]
    options = parser.parse_args([*words, "--dtype", arguments.dtype or "int8"])
    for name in ("fix_layout", "approximate_gelu", "keep_out"):
        setattr(options, name, getattr(arguments, name))
    ((program, _),) = aot_compile.compile_models(options)
    return program


def _document(file: artefact.Artefact, *, commands: bool) -> dict[str, Any]:
    """All that the file says.

    Raises:
        UsageError: a network in it is damaged.
    """
    return {
        "file": str(file.path),
        "bytes": len(file.data),
        "sha256": hashlib.sha256(file.data).hexdigest(),
        "program": describe.program(file.program) if file.program else None,
        "model": describe.tflite(file.model) if file.model else None,
        "networks": [_network(file.path, network, commands=commands) for network in file.networks],
    }


def _network(path: Path, network: artefact.Network, *, commands: bool) -> dict[str, Any]:
    try:
        found = {"id": network.number, **listing.describe(network.vela)}
        if commands:
            found["commands"] = listing.commands_of(network.vela)
    except NpuError as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"damaged network {network.number}", where=str(path), why=why) from error
    return describe.attach_origins(found, network.queue, network.origins)

# SPDX-License-Identifier: Apache-2.0
"""``armdeploy inspect FILE``."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from aot import artefact
from npu import listing
from npu.errors import NpuError
from report import describe, inspect_text
from report.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help=".pte, .bpte, .tflite, or Vela's raw result (.npz)"
    )
    parser.add_argument("--commands", action="store_true", help="disassemble every command")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    parser.add_argument(
        "--node-data", type=Path, metavar="FILE", help="write MACs by TOSA operator for Model Explorer"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, describe, print."""
    document = _document(artefact.read(arguments.file), commands=arguments.commands)
    if arguments.node_data is not None:
        text = json.dumps(inspect_text.node_data(document), indent=2) + "\n"
        arguments.node_data.write_text(text, encoding="utf-8")
    print(json.dumps(document, indent=2) if arguments.json else inspect_text.to_text(document))
    return 0


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
    return found if network.queue is None else describe.attach_origins(found, network.queue, network.origins)

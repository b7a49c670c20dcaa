# SPDX-License-Identifier: Apache-2.0
"""``armdeploy inspect FILE``."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from npu import listing
from npu.container import VelaBin, load_raw_npz, parse_velabin
from npu.errors import NpuError
from report import compile_report, describe, inspect_text, pte, tflite, vela_debug
from report.errors import UsageError

ETHOS_U = "EthosUBackend"


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
    document = _document(arguments.file, commands=arguments.commands)
    if arguments.node_data is not None:
        text = json.dumps(inspect_text.node_data(document), indent=2) + "\n"
        arguments.node_data.write_text(text, encoding="utf-8")
    print(json.dumps(document, indent=2) if arguments.json else inspect_text.to_text(document))
    return 0


def _document(path: Path, *, commands: bool) -> dict[str, Any]:
    """All that the file says.

    Raises:
        UsageError: the file is none of the known kinds, or damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError("cannot read the file", where=str(path), why=str(error.strerror)) from error
    program, model, networks = _read(path, data)
    return {
        "file": str(path),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "program": program,
        "model": model,
        "networks": [_network(path, i, vela, commands=commands) for i, vela in networks],
    }


def _read(path: Path, data: bytes) -> tuple[Any, Any, list[tuple[int, VelaBin]]]:
    """(program, model, networks with their delegate number); what the file is not is None."""
    try:
        if data[4:8] == b"TFL3":
            model = tflite.load(path)
            return None, describe.tflite(model), list(enumerate(_tflite_networks(model)))
        if data[:2] == b"PK":
            return None, None, [(0, load_raw_npz(path))]
        program = pte.parse(data, str(path))
        return describe.program(program), None, _delegates(program)
    except NpuError as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError("damaged Ethos-U network", where=str(path), why=why) from error


def _delegates(program: pte.Program) -> list[tuple[int, VelaBin]]:
    """The Ethos-U networks of all methods; other backends' delegates are listed, not opened."""
    delegates = [delegate for method in program.methods for delegate in method.delegates]
    return [
        (number, parse_velabin(delegate.blob, program.named_data))
        for number, delegate in enumerate(delegates)
        if delegate.backend == ETHOS_U
    ]


def _tflite_networks(model: tflite.TfliteModel) -> list[VelaBin]:
    """The networks that Vela put into a .tflite: command stream, constants, scratch, fast scratch."""
    networks = []
    for operator in model.operators:
        if operator.name == tflite.ETHOS_U:
            stream, constants, scratch, fast = (model.tensors[i] for i in operator.inputs[:4])
            sizes = [tensor.shape[0] if tensor.shape else 0 for tensor in (scratch, fast)]
            networks.append(
                VelaBin(
                    stream.data or b"", constants.data or b"", sizes[0], (), (), fast_scratch_size=sizes[1]
                )
            )
    return networks


def _network(path: Path, number: int, vela: VelaBin, *, commands: bool) -> dict[str, Any]:
    try:
        network = {"id": number, **listing.describe(vela)}
        if commands:
            network["commands"] = listing.commands_of(vela)
    except NpuError as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"damaged network {number}", where=str(path), why=why) from error
    return _with_origins(path, number, network)


def _with_origins(path: Path, number: int, network: dict[str, Any]) -> dict[str, Any]:
    """The network with operators of TOSA and lines of the model, when a compile report is beside the file."""
    report = compile_report.find(path)
    if report is None or number >= len(report.data["delegates"]):
        return network
    delegate = report.data["delegates"][number]
    database = report.path.parent / delegate["debug_database"]
    if not database.is_file():
        return network
    return describe.attach_origins(network, vela_debug.read(database), delegate["origins"])

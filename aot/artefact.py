# SPDX-License-Identifier: Apache-2.0
"""What came out of a compilation, read back: a .pte, a .tflite or Vela's raw result, and its networks.

Imports neither torch nor executorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npu.container import VelaBin, load_raw_npz, parse_velabin
from npu.errors import NpuError
from report import compile_report, pte, tflite
from report.errors import UsageError
from report.vela_debug import QueuedOperation

ETHOS_U = "EthosUBackend"


@dataclass(frozen=True)
class Network:
    """One Ethos-U network.

    Attributes:
        number: of the delegate in the program, over all methods.
        queue: Vela's account of its commands, None where it was not kept.
        origins: what the compile report says of its TOSA operators.
    """

    number: int
    vela: VelaBin
    queue: Mapping[int, QueuedOperation] | None = None
    origins: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


@dataclass(frozen=True)
class Artefact:
    """A compiled file. `program` and `model` are None where the file is none.

    Attributes:
        report: the compile report beside it, if it describes this very file.
    """

    path: Path
    data: bytes
    program: pte.Program | None
    model: tflite.TfliteModel | None
    report: compile_report.CompileReport | None
    networks: tuple[Network, ...]


def read(path: Path) -> Artefact:
    """Read a .pte, .bpte, .tflite or .npz file; its kind is told by its content.

    Raises:
        UsageError: unreadable, none of these, or damaged; the message says which.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError("cannot read the file", where=str(path), why=str(error.strerror)) from error
    try:
        return _read(path, data)
    except NpuError as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError("damaged Ethos-U network", where=str(path), why=why) from error


def _read(path: Path, data: bytes) -> Artefact:
    if data[4:8] == b"TFL3":
        model = tflite.load(path)
        found = tuple(Network(i, vela) for i, vela in enumerate(_tflite_networks(model)))
        return Artefact(path, data, None, model, None, found)
    if data[:2] == b"PK":
        return Artefact(path, data, None, None, None, (Network(0, load_raw_npz(path)),))
    program = pte.parse(data, str(path))
    report = compile_report.find(path)
    delegates = [delegate for method in program.methods for delegate in method.delegates]
    networks = tuple(
        _network(number, parse_velabin(delegate.blob, program.named_data), report)
        for number, delegate in enumerate(delegates)
        if delegate.backend == ETHOS_U
    )
    return Artefact(path, data, program, None, report, networks)


def _network(number: int, vela: VelaBin, report: compile_report.CompileReport | None) -> Network:
    """With what the compile report knows of the delegate."""
    return Network(number, vela, *(report.network_origins(number) if report is not None else ()))


def _tflite_networks(model: tflite.TfliteModel) -> list[VelaBin]:
    """The networks that Vela put into a .tflite: command stream, constants, scratch, fast scratch."""
    networks = []
    for operator in model.operators:
        if operator.name == tflite.ETHOS_U:
            stream, constants, scratch, fast = (model.tensors[i] for i in operator.inputs[:4])
            sizes = [tensor.shape[0] if tensor.shape else 0 for tensor in (scratch, fast)]
            commands, weights = stream.data or b"", constants.data or b""
            networks.append(VelaBin(commands, weights, sizes[0], (), (), fast_scratch_size=sizes[1]))
    return networks

# SPDX-License-Identifier: Apache-2.0
"""What ExecuTorch knows while it lowers, kept: rejected operators and the TOSA graph of each partition.

ExecuTorch 1.5.1 hands neither out. The partitioner logs its reasons as text, and the backend calls Vela at
once, so that a second target with the same TOSA graphs would have to repeat the whole lowering. For the time
of one lowering, two names of its modules are therefore replaced by ones that listen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock


@dataclass
class LoweringRecord:
    """What was heard.

    Attributes:
        rejected: the partitioner's reason by node name.
        tosa: the TOSA flatbuffers. A delegate's bytes are its index here, in decimal, until Vela has run.
    """

    rejected: dict[str, str] = field(default_factory=dict)
    tosa: list[bytes] = field(default_factory=list)


@contextlib.contextmanager
def recording() -> Iterator[LoweringRecord]:
    """Record what is lowered inside the block, in place of running Vela."""
    from executorch.backends.arm.arm_vela import VelaCompileResult
    from executorch.backends.arm.ethosu import backend
    from executorch.backends.arm.tosa import partitioner
    from executorch.exir.backend.utils import WhyNoPartitionReporter

    record = LoweringRecord()

    class Reporter(WhyNoPartitionReporter):
        """Also keeps the first reason given for each node, by node name; the last partitioning counts."""

        def __init__(self) -> None:
            super().__init__()
            record.rejected.clear()

        def report_reject(self, node: Any, reason: str) -> None:
            super().report_reject(node, reason)
            record.rejected.setdefault(node.name, " ".join(reason.split()))

    def keep_tosa(tosa: bytes, *_args: Any, **_options: Any) -> VelaCompileResult:
        record.tosa.append(tosa)
        return VelaCompileResult(str(len(record.tosa) - 1).encode())

    with (
        mock.patch.object(partitioner, "WhyNoPartitionReporter", Reporter),
        mock.patch.object(backend, "vela_compile", keep_tosa),
    ):
        yield record

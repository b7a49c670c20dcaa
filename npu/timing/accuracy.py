# SPDX-License-Identifier: Apache-2.0
"""How far the cycle model is from counters of Arm's FVPs, as figures to print beside its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from npu.config import Family


@dataclass(frozen=True)
class Accuracy:
    """Mean error of NPU_ACTIVE in percent over `runs` networks and configurations, and the worst of them."""

    mean_percent: float
    worst_percent: float
    runs: int
    reference: str

    def __str__(self) -> str:
        return (
            f"±{self.mean_percent:g} % against {self.reference}, {self.runs} cells, "
            f"worst {self.worst_percent:g} %"
        )


ACCURACY: Mapping[Family, Accuracy] = MappingProxyType(
    {
        Family.U55: Accuracy(1.2, 4.0, 12, "Arm's Corstone-300 FVP"),
        Family.U65: Accuracy(1.8, 3.2, 6, "Arm's Corstone-300 FVP"),
        Family.U85: Accuracy(1.9, 6.3, 15, "Arm's Corstone-320 FVP"),
    }
)
"""Of docs/validation.md; a test computes them again from the kept streams."""

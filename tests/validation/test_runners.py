# SPDX-License-Identifier: Apache-2.0
"""Our runner does what Arm's firmware does, on the programs that are kept with the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from fvp.virtual.run import FIRMWARES, VirtualCorstone
from validation.runners import PLACEMENTS, compare

DATA = Path(__file__).parents[1] / "data"
PROGRAMS = {
    "ethos-u85-256": ["ds_cnn_u85_256.pte", "fvp/mixed_u85_256.pte", "fvp/layouts_u85_256.pte"],
    "ethos-u55-128": ["ds_cnn_u55_128.pte", "fvp/mixed_u55_128.pte", "fvp/layouts_u55_128.pte"],
}
REASONS = [VirtualCorstone.available_for(target, runner) for target in PLACEMENTS for runner in FIRMWARES]
REASON = next(filter(None, REASONS), None)


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize(
    ("target", "name"), [(target, name) for target, names in PROGRAMS.items() for name in names]
)
def test_outputs_and_counters_are_those_of_arms_firmware(target: str, name: str) -> None:
    found = compare(Path(name).stem, target, DATA / name)
    assert found.differences == ()
    assert found.counters >= 5 and found.npu_active

# SPDX-License-Identifier: Apache-2.0
"""The host's quantise kernel against Arm's firmware: ties, their neighbours, values out of range."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fvp.host.executor import execute_method
from fvp.platform import Job
from fvp.virtual.run import VirtualCorstone
from npu.config import npu_config
from report import pte

DATA = Path(__file__).parents[1] / "data"
PROGRAMS = {"ethos-u85-256": "ds_cnn_u85_256.pte", "ethos-u55-128": "ds_cnn_u55_128.pte"}
"""ds_cnn has 490 input elements: thirty groups of 16 and ten left over, which the kernel treats apart."""


def _hard_inputs(shape: tuple[int, ...], scale: float) -> dict[str, np.ndarray]:
    count = int(np.prod(shape))
    ties = ((np.arange(count) % 300 - 150 + 0.5) * scale).astype(np.float32)
    rng = np.random.default_rng(0)
    wide = rng.choice([-1, 1], count) * 10 ** rng.uniform(-3, 9, count)
    hard = {
        "ties": ties,
        "above ties": np.nextafter(ties, np.float32(np.inf)),
        "below ties": np.nextafter(ties, np.float32(-np.inf)),
        "out of range": wide.astype(np.float32),
    }
    return {name: array.reshape(shape) for name, array in hard.items()}


@pytest.mark.parametrize("target", PROGRAMS)
@pytest.mark.parametrize("kind", ["ties", "above ties", "below ties", "out of range"])
def test_the_firmware_quantises_as_the_host_does(target: str, kind: str) -> None:
    missing = VirtualCorstone.available_for(target)
    if missing:
        pytest.skip(missing)
    program = pte.load(DATA / PROGRAMS[target])
    method = program.method()
    (tensor,) = method.tensors(method.inputs)
    scale = next(value for value in method.values if isinstance(value, float))
    inputs = (_hard_inputs(tensor.shape, scale)[kind],)
    reference = execute_method(method, program.named_data, inputs, npu_config(target))
    specs = tuple((output.shape, output.dtype) for output in reference.outputs)
    outcome = VirtualCorstone().run(Job(DATA / PROGRAMS[target], target, inputs, 60.0, False, specs))
    for ours, expected in zip(outcome.outputs, reference.outputs, strict=True):
        np.testing.assert_array_equal(ours, expected)

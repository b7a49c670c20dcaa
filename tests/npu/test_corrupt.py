# SPDX-License-Identifier: Apache-2.0
"""Golden delegates give the golden outputs; broken ones give a typed error and nothing else, and soon."""

from __future__ import annotations

import contextlib

import corrupt
import golden
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npu import errors
from npu.config import npu_config
from npu.container import parse_velabin
from npu.machine import execute

# Name of the corruption -> error class and what its text must name.
EXPECTED = {
    "empty": (errors.ContainerError, "end mark"),
    "truncated_container": (errors.ContainerError, "truncated|end mark"),
    "bad_container_magic": (errors.ContainerError, "vela_bad_stream"),
    "bad_driver_magic": (errors.StreamError, "COP1"),
    "unknown_npu": (errors.UnknownConfig, "config"),
    "unknown_opcode": (errors.StreamError, "0x000000ff"),
    "cut_inside_command": (errors.StreamError, "two-word"),
    "weight_length_past_region": (errors.BusError, "region 0"),
    "weights_truncated": (errors.WeightStreamError, None),
    "scales_truncated": (errors.WeightStreamError, None),
    "weight_base_outside_region": (errors.BusError, "region 0"),
    "ifm_outside_region": (errors.BusError, "region 1"),
    "ofm_outside_region": (errors.BusError, "region 1"),
    "negative_stride": (errors.BusError, "region 1"),
    "outputs_outside_scratch": (errors.BusError, "region 1"),
    "small_scratch": (errors.BusError, "region 1"),
    "branch_to_itself": (errors.NpuError, None),
}


def run(container: bytes, case: golden.Golden) -> list[np.ndarray]:
    return execute(parse_velabin(container), npu_config(case.npu), case.inputs)


@pytest.mark.parametrize("name", golden.NAMES)
def test_golden_outputs(name: str) -> None:
    case = golden.load(name)
    outputs = run(case.container, case)
    assert len(outputs) == len(case.outputs)
    for got, want in zip(outputs, case.outputs, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.reshape(want.shape), want)


def test_every_corruption_has_its_expectation_and_file() -> None:
    assert EXPECTED.keys() == corrupt.CORRUPTIONS.keys()
    assert EXPECTED.keys() == {path.stem for path in golden.CORRUPT_FOLDER.iterdir()}


@pytest.mark.parametrize("name", EXPECTED)
def test_corrupt_file(name: str) -> None:
    error, text = EXPECTED[name]
    container = (golden.CORRUPT_FOLDER / f"{name}.bin").read_bytes()
    with pytest.raises(error, match=text):
        run(container, golden.load(golden.CORRUPTIBLE))


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize(
    "victim", ["conv3x3_stride2_shallow__ethos-u55-128", "conv3x3_stride2_shallow__ethos-u65-512"]
)
def test_same_corruption_on_other_families(name: str, victim: str) -> None:
    case = golden.load(victim)
    with pytest.raises(errors.NpuError):
        run(corrupt.CORRUPTIONS[name](case.container), case)


# Where damage goes: anywhere in the container, or (most of a container is weights) into the commands alone.
_PLACES = ("container", "commands")


@st.composite
def damaged(draw: st.DrawFn) -> tuple[golden.Golden, bytes]:
    """A golden delegate with up to four bytes changed, perhaps cut short."""
    case = golden.load(draw(st.sampled_from(golden.NAMES)))
    start, end = _place(case.container, draw(st.sampled_from(_PLACES)))
    container = bytearray(case.container)
    for _ in range(draw(st.integers(1, 4))):
        container[draw(st.integers(start, end - 1))] = draw(st.integers(0, 255))
    keep = draw(st.one_of(st.just(len(container)), st.integers(start, end)))
    return case, bytes(container[:keep])


def _place(container: bytes, place: str) -> tuple[int, int]:
    if place == "container":
        return 0, len(container)
    cmd_data = parse_velabin(container).cmd_data
    start = container.index(cmd_data)
    return start, start + len(cmd_data)


@given(damaged())
@settings(max_examples=300, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
def test_damage_gives_outputs_or_a_typed_error(victim: tuple[golden.Golden, bytes]) -> None:
    case, container = victim
    with contextlib.suppress(errors.NpuError):
        run(container, case)

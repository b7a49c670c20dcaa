# SPDX-License-Identifier: Apache-2.0
"""The cycle model: against what it must agree with by construction, and against Arm's FVPs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import golden
import numpy as np
import pytest
from validation import fvp_cycles
from validation.vela500 import DATA, SETTINGS

from npu import stream
from npu.config import CONFIGS, Family, npu_config
from npu.container import VelaBin, parse_velabin
from npu.errors import NotModelled, StreamError
from npu.isa import Upscale
from npu.machine import Npu, _regions
from npu.memory import ArrayMemory
from npu.registers import EVENTS
from npu.timing import (
    PROFILES,
    MemoryMap,
    Timing,
    estimate,
    kernel,
    memory_map,
    memory_map_from_registers,
    passage,
    profile_for,
    roofline,
    timing_profile,
)
from npu.timing.accuracy import ACCURACY
from npu.timing.counters import TimingCounters, pmu_events
from npu.timing.demand import demands
from npu.timing.geometry import spans, windows
from npu.timing.hardware import PIPELINES, READ_BUFFERS
from npu.timing.memories import whole_bursts
from npu.timing.ports import BIN, Port, Rate, stream_rate
from npu.timing.profile import EXT, SRAM, PortTiming, UnknownProfile
from npu.timing.streams import Flow, Streams

STREAMS = Path(__file__).parents[1] / "data" / "timing" / "streams.npz"
"""Driver payloads of `validation.fvp_cycles`, compiled by Vela 5.0.0; keys "NPU__MODEL"."""

PROFILE = {
    "ethos-u55-128": "mlek:ta_config_u55_high_end",
    "ethos-u65-512": "mlek:ta_config_u65_high_end",
    "ethos-u85-256": "mlek:ta_config_u85_sys_dram_low",
}


def vela(name: str) -> VelaBin:
    return parse_velabin(golden.load(name).container)


def timing(name: str, profile: str | None = None, memory: str = "Shared_Sram") -> Timing:
    npu = golden.load(name).npu
    parsed = stream.parse(vela(name).cmd_data)
    return estimate(parsed, npu_config(npu), timing_profile(profile or PROFILE[npu]), memory_map(memory))


# --- by construction ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", golden.NAMES)
def test_agrees_with_the_execution(name: str) -> None:
    """MACs are those that the machine counts, operation by operation, and no byte goes unmoved."""
    binary, found = vela(name), timing(name)
    result = Npu(npu_config(golden.load(name).npu)).run(binary.cmd_data, ArrayMemory(_regions(binary)))
    assert [(op.offset, op.name, op.mode) for op in found.ops] == [
        (op.offset, op.name, op.mode) for op in result.ops
    ]
    assert [op.macs for op in found.ops] == [op.macs for op in result.ops]
    moved = sum(port.bytes_written for port in found.traffic.values())
    assert moved >= sum(result.bytes_written.values())
    read = sum(port.bytes_read for port in found.traffic.values())
    assert read >= sum(result.bytes_read.values())


@pytest.mark.parametrize("name", golden.NAMES)
def test_accounts(name: str) -> None:
    found = timing(name)
    assert found == timing(name)
    assert sum(op.cycles for op in found.ops) == found.total
    config = npu_config(golden.load(name).npu)
    assert found.macs <= found.mac_cycles * config.macs
    for key, port in found.traffic.items():
        parts = [op.traffic[key] for op in found.ops if key in op.traffic]
        assert sum(part.written for part in parts) == pytest.approx(port.written, abs=len(parts))
    assert all(0 <= op.utilisation(config) <= 1 for op in found.ops)


@pytest.mark.parametrize("name", golden.NAMES)
def test_worse_memory_is_not_faster(name: str) -> None:
    profile = PROFILE[golden.load(name).npu]
    assert timing(name, "none").total <= timing(name, profile).total <= slow_total(name)


def slow_total(name: str) -> int:
    npu = golden.load(name).npu
    profile = timing_profile(PROFILE[npu])
    slow = replace(profile, ext=replace(profile.ext, rlatency=1000, maxr=1))
    parsed = stream.parse(vela(name).cmd_data)
    return estimate(parsed, npu_config(npu), slow, memory_map("Shared_Sram")).total


def test_sram_only_leaves_the_other_port_alone() -> None:
    found = timing("separable_block__ethos-u85-256", memory="Sram_Only")
    assert found.traffic["EXT"].read == found.traffic["EXT"].written == 0
    assert found.traffic["SRAM"].read > 0


@pytest.mark.parametrize("key", ["u85-256__kws_micronet_m", "u55-256__kws_micronet_m"])
def test_repetitions_are_skipped_without_a_trace(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block by block to the end, an operation takes what is computed from its first repetitions."""
    quick = total(*key.split("__"))
    monkeypatch.setattr(passage, "_shift", lambda *_: 0.0)
    demands.cache_clear()
    assert total(*key.split("__")) == quick
    demands.cache_clear()


@pytest.mark.parametrize("name", golden.NAMES)
def test_what_is_kept_is_what_is_worked_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passages of operations that are alike, and shares of the ports: from the stores as without them."""
    found = timing(name)
    assert timing(name) == found
    monkeypatch.setattr(kernel, "passage", lambda *state: passage._Passage(*state).run())
    monkeypatch.setattr(Streams, "_known", property(lambda _: {}, lambda *_: None), raising=False)
    assert timing(name) == found


@pytest.mark.parametrize("name", golden.NAMES)
def test_no_operation_is_above_its_roof(name: str) -> None:
    found = timing(name)
    roofs = roofline(found)
    assert len(roofs.points) == sum(op.macs > 0 and op.cycles > 0 for op in found.ops)
    for point in roofs.points:
        assert 0 < point.reached <= point.roof <= roofs.peak
        assert point.limit == "mac" or point.limit in found.ops[point.number].traffic


def test_stream_without_stop() -> None:
    parsed = stream.parse(vela("sigmoid__ethos-u55-128").cmd_data)
    with pytest.raises(StreamError, match="without STOP"):
        estimate(parsed.commands[:-1], npu_config("ethos-u55-128"), PROFILES["none"], memory_map("Sram_Only"))


def test_an_operation_of_too_many_blocks() -> None:
    """Executable as it may be, it is not timed: the counters stay as they are."""
    family = Family.U55
    settings = {"OFM_WIDTH_M1": 8191, "OFM_HEIGHT_M1": 255, "OFM_DEPTH_M1": 0}
    commands = [stream.command(family, name, value=value) for name, value in settings.items()]
    commands += [stream.command(family, "OP_POOL", mode=0), stream.command(family, "OP_STOP", mask=1)]
    config = npu_config("ethos-u55-128")
    with pytest.raises(NotModelled, match="2097152 blocks"):
        estimate(commands, config, PROFILES["none"], memory_map("Sram_Only"))
    raw = b"".join(map(stream.encode, commands))
    counters = TimingCounters(config, lambda: PROFILES["none"])
    assert counters(raw, {}) == {}
    assert counters.timing is None


def test_blocks_and_windows() -> None:
    assert spans(10, 4) == ((0, 4), (4, 4), (8, 2))
    # A 3x3 window with stride 2 and one row of padding over nine rows: the edges are clipped.
    assert windows([(0, 2), (2, 2), (4, 1)], 2, 3, 1, 9, Upscale.NONE) == [(0, 4), (3, 5), (7, 2)]
    assert windows([(0, 4)], 1, 1, 0, 2, Upscale.NEAREST) == [(0, 2)]


# --- ports --------------------------------------------------------------------------------------------------


def test_bandwidth_is_shared_in_any_order() -> None:
    port = Port(PortTiming(), bandwidth=1, adapters=1, permitted=(1, 1), burst=8)
    fast = Rate(1, 0, False, 1)
    assert port.serve(BIN, BIN, fast) == 2 * BIN
    assert port.serve(0, BIN, fast) == BIN  # booked later, served earlier
    assert port.serve(0, 64, fast) == 2 * BIN + 64  # the first two bins are full
    assert port.serve(0, BIN, Rate(1, 0, True, 1)) == BIN  # the other direction is not
    assert port.moved == [2 * BIN + 64, BIN]


def test_cap_overshoots_by_whole_bursts() -> None:
    """50 beats in 400 cycles, checked before a burst of 8: 56."""
    adapter = PortTiming(pulse_on=320, pulse_off=80, bwcap=50)
    port = Port(adapter, bandwidth=1, adapters=1, permitted=(1, 1), burst=8)
    assert port.serve(0, 5600, Rate(1, 0, False, 1)) == pytest.approx(40_000, rel=1e-3)


def test_streams_share_a_port() -> None:
    """Alone at their own rates; beside another with what its average leaves; never less than they need."""
    port = Port(PortTiming(), bandwidth=1, adapters=1, permitted=(1, 1), burst=8)
    fast, write = Rate(1, 0, False, 1), Rate(1, 0, True, 1)

    def speeds(least: float, *flows: tuple[int, Rate]) -> list[float]:
        asking = [Flow(0, beats, rate) for beats, rate in flows]
        return list(Streams(asking).shares([port], 0, least))

    assert speeds(0, (1000, fast)) == [1]
    assert speeds(4000, (1000, fast), (500, fast)) == [0.875, 0.75]
    assert speeds(0, (1000, fast), (500, fast)) == pytest.approx([2 / 3, 1 / 3])
    assert speeds(0, (1000, fast), (500, write)) == [1, 1]
    port.spread(0, 2047, 1024, fast)
    assert port.booked(0, 2047)[:3] == (0.5, 0.5, 0)
    assert speeds(2047, (512, fast)) == [0.5]


def test_transactions_in_flight() -> None:
    adapter = PortTiming(maxr=2, rlatency=64, pulse_on=320, pulse_off=80)
    rate = stream_rate(adapter, burst=8, top=1, write=False, permitted=1, pulses=False)
    assert rate.beats == pytest.approx(2 * 8 / 68)  # a read leaves with its first word, a write with its last
    store = stream_rate(
        replace(adapter, maxw=2, wlatency=64), burst=8, top=1, write=True, permitted=1, pulses=False
    )
    assert store.beats == pytest.approx(2 * 8 / 72)
    # Five of 68 cycles start while addresses pass, so both slots are busy for 340 of 400 cycles.
    held = stream_rate(adapter, burst=8, top=1, write=False, permitted=1, pulses=True)
    assert held.beats == pytest.approx(0.85 * 2 * 8 / 68)
    port = Port(adapter, bandwidth=1, adapters=1, permitted=(1, 1), burst=8)
    port.serve(0, 800, rate)
    assert port.serve(0, 800, rate) == pytest.approx(1600 / rate.beats, rel=0.02)


# --- profiles -----------------------------------------------------------------------------------------------


def test_profiles() -> None:
    assert profile_for("Ethos_U85_SYS_DRAM_Mid_512", "Dedicated_Sram", "mlek").ext.rlatency == 500
    assert profile_for("Ethos_U55_High_End_Embedded", "Shared_Sram").ext.bwcap == 50
    only = profile_for("Ethos_U85_SYS_DRAM_Mid", "Sram_Only")
    assert only.ext == only.sram
    assert profile_for("Ethos_U65_High_End", "Dedicated_Sram_384KB").ext.maxr == 64
    with pytest.raises(UnknownProfile, match="Ethos_U85_SYS_Flash_High with Shared_Sram"):
        profile_for("Ethos_U85_SYS_Flash_High", "Shared_Sram")
    with pytest.raises(UnknownProfile, match="known: none"):
        timing_profile("fast")
    with pytest.raises(UnknownProfile, match="known: Sram_Only"):
        memory_map("Flash")


def test_ports_from_registers() -> None:
    # Region 0 by selector 3, regions 1 and 2 by 1, commands by 2.
    regioncfg = 3 | 1 << 2 | 1 << 4
    u55 = memory_map_from_registers(npu_config("ethos-u55-128"), regioncfg, 2, ())
    assert u55 == MemoryMap((EXT, SRAM, SRAM, *(SRAM,) * 5), EXT)
    attributes = (0x20, 0x24, 0x20, 0x20)  # only selector 1 is the EXT port
    u85 = memory_map_from_registers(npu_config("ethos-u85-256"), regioncfg, 2, attributes)
    assert u85 == MemoryMap((SRAM, EXT, EXT, *(SRAM,) * 5), SRAM)


# --- counters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["separable_block__ethos-u55-128", "separable_block__ethos-u85-256"])
def test_events_have_the_names_of_the_registers(name: str) -> None:
    found = timing(name)
    family = npu_config(golden.load(name).npu).family
    events = pmu_events(found)
    assert set(events) <= set(EVENTS[family].values())
    assert "NPU_IDLE" not in events
    assert events["NPU_ACTIVE"] == events["CYCLE"] == found.total
    waited = sum(op.dependency_cycles for op in found.ops)
    assert 0 < events["CC_STALLED_ON_BLOCKDEP"] == waited < found.total
    if family is not Family.U85:
        widths = [events[f"MAC_ACTIVE_{bits}BIT"] for bits in (8, 16, 32)]
        assert widths == [events["MAC_ACTIVE"], 0, 0]
        assert events["CC_STALLED_ON_SHRAM_RECONFIG"] == found.reconfiguration_cycles < found.total


def test_a_repeated_job_is_not_estimated_again() -> None:
    commands = stream.parse(vela("sigmoid__ethos-u55-128").cmd_data)
    raw = b"".join(stream.encode(command) for command in commands.commands)
    counters = TimingCounters(npu_config("ethos-u55-128"), lambda: PROFILES["none"])
    events = counters(raw, {})
    first = counters.timing
    assert counters(raw, {}) == events
    assert counters.timing is first


# --- against Arm's FVPs -------------------------------------------------------------------------------------

needs_figures = pytest.mark.skipif(
    not (DATA / "fvp").exists(), reason="the published FVP figures are not in ../shared/data"
)


def compiled(key: str) -> stream.CommandStream:
    with np.load(STREAMS, allow_pickle=False) as arrays:
        return stream.parse(arrays[key].tobytes())


def total(npu: str, key: str) -> Timing:
    setting = SETTINGS[npu]
    return estimate(
        compiled(f"{npu}__{key}"),
        npu_config(f"ethos-{npu}"),
        profile_for(setting.system_config, setting.memory_mode, "mlek"),
        memory_map(setting.memory_mode),
    )


def errors(family: str) -> Iterator[tuple[float, dict[str, float]]]:
    """Per cent of each cell, and of its beat counters that are large enough."""
    for cell in fvp_cycles.read_cells():
        if cell.npu.startswith(family):
            found = total(cell.npu, cell.workload)
            beats = {
                name: fvp_cycles.per_cent(fvp_cycles.beats_of(found, name), count)
                for name, count in cell.beats.items()
                if count >= fvp_cycles.FEW_BEATS
            }
            yield fvp_cycles.per_cent(found.total, cell.active), beats


@needs_figures
@pytest.mark.parametrize(("family", "limit"), [("u55", 1.3), ("u65", 3.0), ("u85", 2.5)])
def test_networks(family: str, limit: float) -> None:
    found = list(errors(family))
    assert fvp_cycles.mean_error(error for error, _ in found) <= limit
    assert max(abs(error) for error, _ in found) <= 8
    for name in {name for _, beats in found for name in beats}:
        mean = fvp_cycles.mean_error(beats[name] for _, beats in found if name in beats)
        assert mean <= (3 if name in ("axi0_rd", "sram_rd") else 0.5), name


def test_weights_are_read_ahead_as_far_as_there_is_room() -> None:
    """Beats stay; a full buffer is worth more where reads are slower, and no more than it holds."""
    setting, config = SETTINGS["u85-512"], npu_config("ethos-u85-512")
    profile = profile_for(setting.system_config, setting.memory_mode, "mlek")
    waits = replace(PIPELINES[Family.U85], weights_ahead=False)
    parsed, gains = compiled("u85-512__rnnoise"), []
    for reads in (4, 16):
        few = replace(profile, ext=replace(profile.ext, maxr=reads))
        ahead, late = (
            estimate(parsed, config, few, memory_map(setting.memory_mode), pipeline)
            for pipeline in (PIPELINES[Family.U85], waits)
        )
        assert ahead.traffic == late.traffic
        gains.append(late.total - ahead.total)
        operations = sum(op.name == "OP_CONV" for op in ahead.ops)
        beats_per_cycle = reads * 8 / (profile.ext.rlatency + 4)
        most = READ_BUFFERS[512].weights / beats_per_cycle + profile.ext.rlatency
        assert 0 < gains[-1] <= operations * most
    assert gains[0] > gains[1]


def test_a_buffer_holds_whole_bursts_and_one_at_least() -> None:
    assert [whole_bursts(room, 8) for room in (102.4, 96, 95.9, 3)] == [96, 96, 88, 8]


@needs_figures
@pytest.mark.parametrize("family", list(Family))
def test_the_accuracy_that_is_printed_is_the_one_that_is_measured(family: Family) -> None:
    found = [abs(error) for error, _ in errors(family.name.lower())]
    stated = ACCURACY[family]
    assert len(found) == stated.runs
    assert round(sum(found) / len(found), 1) == stated.mean_percent
    assert round(max(found), 1) == stated.worst_percent


@needs_figures
def test_single_layers() -> None:
    found = [
        (published, total("u85-256", f"{op}_{size}").total)
        for op, size, published in fvp_cycles.read_layers()
    ]
    assert len(found) == 51
    assert fvp_cycles.mean_error(fvp_cycles.per_cent(b, a) for a, b in found) <= 6
    assert sum(abs(b - a) <= 1000 for a, b in found) >= 40


def test_every_configuration_has_its_numbers() -> None:
    for config in CONFIGS.values():
        name = "sigmoid__" + {Family.U55: "ethos-u55-128", Family.U65: "ethos-u65-512"}.get(
            config.family, "ethos-u85-256"
        )
        parsed = stream.parse(vela(name).cmd_data)
        found = estimate(parsed, config, PROFILES["none"], memory_map("Sram_Only"))
        assert found.total > 0
        assert PIPELINES[config.family].beat_bytes in (8, 16)

# SPDX-License-Identifier: Apache-2.0
"""Runs on a phone and on a machine behind ssh, through a stand-in for adb, ssh and scp (`standin`).

What is shown: the command lines, the files there and back, the proof of the end, one line for each thing
that goes wrong. Not shown: anything about a phone, least of all its time.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from fvp.aarch64 import adb, cores, runner, ssh, study, tools
from fvp.aarch64.bundle import Bundle
from fvp.aarch64.options import CpuRun, parse_threads
from fvp.aarch64.platform import Aarch64Emulated, OverAdb, OverSsh
from fvp.aarch64.remote import Remote
from fvp.inference import Request
from report.errors import ArmdeployError, EnvironmentError_, PlatformTimeout, RunFailed, UsageError
from report.record import SCHEMA_PATH

DATA = Path(__file__).parent.parent / "data" / "aarch64"
PROGRAM = DATA / "two_conv_fp16_xnnpack_cortex-a-sme2.pte"
STANDIN = Path(__file__).with_name("standin.py")
PHONE = "R5CT1234567"
FREQUENCIES = {0: 2200000, 1: 2200000, 6: 3500000, 7: 4200000}

emulated = pytest.mark.skipif(
    Aarch64Emulated.available() is not None, reason=str(Aarch64Emulated.available())
)


def program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that is the other machine, reached by adb, ssh and scp of this one's PATH."""
    root, here = tmp_path / "there", tmp_path / "bin"
    for folder in (root / "bin", root / "home", root / "data/local/tmp", here):
        folder.mkdir(parents=True)
    for name in ("adb", "ssh", "scp"):
        program(here / name, f"#!{sys.executable}\n{STANDIN.read_text(encoding='utf-8')}")
    program(root / "bin" / "uname", "#!/bin/sh\n[ $1 = -m ] && echo aarch64 || echo Linux 6.6\n")
    program(root / "bin" / "getprop", "#!/bin/sh\necho stand-in $1\n")
    program(root / "bin" / "taskset", f'#!/bin/sh\necho $1 >>{root}/masks\nshift\nexec "$@"\n')
    for number, frequency in FREQUENCIES.items():
        folder = root / f"sys/devices/system/cpu/cpu{number}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "cpuinfo_max_freq").write_text(f"{frequency}\n", encoding="utf-8")
        (folder / "scaling_governor").write_text("walt\n", encoding="utf-8")
    monkeypatch.setenv("PATH", f"{here}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv(adb.VARIABLE, raising=False)
    monkeypatch.setenv("STANDIN_ROOT", str(root))
    monkeypatch.setenv("STANDIN_DEVICES", f"{PHONE}\tdevice")
    monkeypatch.setenv("STANDIN_QEMU", str(tools.find_qemu() or "qemu-aarch64"))
    return root


@pytest.fixture
def small_bundle(tmp_path: Path) -> Bundle:
    """A bundle whose loader is a script: it writes the one output and its own end."""
    folder = tmp_path / "bundle"
    (folder / "lib").mkdir(parents=True)
    program(folder / "executor_runner", "runner")
    end = "for word; do case $word in --run-id=*) id=${word#--run-id=};; esac; done"
    said = "echo I Program complete, exiting.; echo run $id ended with exit status 0"
    program(folder / "lib/ld-linux-aarch64.so.1", f"#!/bin/sh\n{end}\nprintf abcd >out-0.bin\n{said}\n")
    return Bundle(folder)


@pytest.fixture
def no_emulator(machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in's machine where the loader is a script: "-cpu max LOADER …" just runs it."""
    program(machine / "bin" / "emulator", '#!/bin/sh\nshift 2\nexec "$@"\n')
    monkeypatch.setenv("STANDIN_QEMU", str(machine / "bin" / "emulator"))
    return machine


JOB = runner.RunnerJob(b"program", (b"input",), (4,), "neon", 20.0, profile=False, inferences=2)


@pytest.mark.parametrize("kind", ["adb", "ssh"])
def test_files_go_there_and_back_and_the_bundle_is_copied_once(
    no_emulator: Path, small_bundle: Bundle, kind: str
) -> None:
    connection = adb.Adb(None) if kind == "adb" else ssh.Ssh("user@board")
    there = Remote(connection, small_bundle)
    assert runner.run(there, JOB).outputs == (b"abcd",)
    assert runner.run(there, JOB).outputs == (b"abcd",)
    log = (no_emulator / "log").read_text(encoding="utf-8")
    assert log.count("ld-linux-aarch64.so.1 ") > log.count(f"{small_bundle.folder}/lib/ld-linux") == 1
    assert log.count("--isa=neon") == 2 and log.count("timeout -s KILL 21") == 2
    left = [path.name for path in no_emulator.rglob("run-*")]
    assert left == []
    assert there.describe()["power"].startswith("default")


def test_a_changed_bundle_is_copied_again(no_emulator: Path, small_bundle: Bundle) -> None:
    connection = adb.Adb(None)
    runner.run(Remote(connection, small_bundle), JOB)
    (small_bundle.folder / "lib/libnew.so").write_bytes(b"new")
    runner.run(Remote(connection, small_bundle), JOB)
    assert len(list(no_emulator.rglob("bundle-*"))) == 2


def test_pinned_runs_keep_to_the_fastest_cores(no_emulator: Path, small_bundle: Bundle) -> None:
    for count, mask in ((1, "80"), (2, "c0"), (3, "c2")):
        there = Remote(adb.Adb(PHONE), small_bundle, count)
        runner.run(there, JOB)
        assert (no_emulator / "masks").read_text(encoding="utf-8").split()[-1] == mask
    power = Remote(adb.Adb(None), small_bundle, 1).describe()["power"]
    assert power.startswith("pinned to cpu7 (at most 4.2 GHz), mask 80") and "fixing it needs root" in power
    with pytest.raises(EnvironmentError_, match=r"5 wanted, .* tells the frequency of 4"):
        Remote(adb.Adb(None), small_bundle, 5)


@pytest.mark.parametrize(
    ("devices", "serial", "kind", "message"),
    [
        ("", None, EnvironmentError_, "no phone is connected"),
        ("A\tdevice\nB\tdevice", None, UsageError, r"several phones are connected: A \(device\), B"),
        ("A\tdevice", "B", EnvironmentError_, r"no phone B; connected: A \(device\)"),
        ("A\tunauthorized", None, EnvironmentError_, "phone A has not authorised this computer; confirm"),
        ("A\toffline", None, EnvironmentError_, "phone A is offline"),
        ("A\tno permissions (udev)", None, EnvironmentError_, "'no permissions .udev.'; see adb devices"),
    ],
)
def test_a_phone_that_cannot_be_used_is_one_line(
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    devices: str,
    serial: str | None,
    kind: type[ArmdeployError],
    message: str,
) -> None:
    monkeypatch.setenv("STANDIN_DEVICES", devices)
    with pytest.raises(kind, match=message) as caught:
        adb.Adb(serial)
    assert caught.value.exit_code == (2 if kind is UsageError else 3)


def test_the_named_phone_of_several_is_used(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDIN_DEVICES", f"A\tunauthorized\n{PHONE}\tdevice")
    assert adb.Adb(PHONE).describe()["device"] == "stand-in ro.product.model"


@pytest.mark.parametrize(
    ("fault", "kind", "code", "message"),
    [
        ("full", EnvironmentError_, 3, "cannot copy to phone .*No space left on device; free space in"),
        ("cut", RunFailed, 5, "exit status"),
        ("slow", PlatformTimeout, 7, "no result within 1 s"),
    ],
)
def test_what_goes_wrong_on_a_phone_is_one_line(
    no_emulator: Path,
    small_bundle: Bundle,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    kind: type[ArmdeployError],
    code: int,
    message: str,
) -> None:
    monkeypatch.setenv("STANDIN_FAULT", fault)
    monkeypatch.setattr("fvp.aarch64.remote._GRACE", 0.5)
    job = runner.RunnerJob(b"program", (b"input",), (4,), "neon", 1.0, profile=False)
    with pytest.raises(kind, match=message) as caught:
        runner.run(Remote(adb.Adb(None), small_bundle), job)
    assert caught.value.exit_code == code and "\n" not in caught.value.one_line()


def test_a_machine_that_ssh_does_not_reach_or_is_another_kind_is_one_line(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="give --host USER@MACHINE"):
        ssh.Ssh(None)
    with pytest.raises(UsageError, match="is no machine"):
        ssh.Ssh("-oProxyCommand=x")
    program(machine / "bin" / "uname", "#!/bin/sh\necho x86_64\n")
    with pytest.raises(EnvironmentError_, match="user@board is x86_64, not AArch64"):
        ssh.Ssh("user@board")
    monkeypatch.setenv("STANDIN_FAULT", "unreachable")
    with pytest.raises(EnvironmentError_, match=r"cannot reach user@board: .*Connection refused"):
        ssh.Ssh("user@board")


def test_without_adb_a_run_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(adb.VARIABLE, raising=False)
    assert "apt-get install adb" in str(OverAdb.available())
    monkeypatch.setenv(adb.VARIABLE, "/nowhere/adb")
    assert "/nowhere/adb is no program" in str(OverAdb.available())
    assert "ssh, scp not installed" in str(OverSsh.available())


@pytest.mark.parametrize(
    ("platform", "options"),
    [
        (Aarch64Emulated, CpuRun(threads=(1, 4))),
        (Aarch64Emulated, CpuRun(pinned=True)),
        (OverSsh, CpuRun(serial="A")),
        (OverAdb, CpuRun(host="user@board")),
    ],
)
def test_options_that_mean_nothing_are_refused(platform: type, options: CpuRun) -> None:
    with pytest.raises(UsageError, match=f"--platform {platform.name}: --.* means nothing here"):
        platform().configure(options)


def test_threads_are_numbers() -> None:
    assert parse_threads("1,4,1") == (1, 4)
    for text in ("", "0", "two", "1,,2", "-1"):
        with pytest.raises(UsageError, match="no numbers of threads"):
            parse_threads(text)


def test_cores_without_a_governor_are_still_ranked() -> None:
    pinning = cores.fastest("cpu10/cpufreq 1000 \ncpu2/cpufreq 3000 schedutil\n", 1, "x")
    assert pinning.prefix == ("taskset", "4")


@emulated
def test_a_whole_run_on_a_phone_with_two_threads(machine: Path) -> None:
    options = CpuRun(threads=(2,), warmup=0, repetitions=2, serial=PHONE)
    found = study.infer(Request(PROGRAM, timeout=300), options)
    assert found.error is None, found.log
    document = json.loads(found.record.to_json())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))
    assert document["platform"]["kind"] == "adb"
    assert document["platform"]["device"] == "stand-in ro.product.model"
    assert [profile.key for profile in found.profiles] == ["sme2_2threads", "neon_2threads"]
    for profile in found.profiles:
        assert profile.nature == "measured" and len(profile.latencies) == 2 and min(profile.latencies) > 0
        assert 0 <= profile.framework < profile.inference
        starts = [operator.start for operator in profile.operators]
        assert starts == sorted(starts) and starts[-1] < profile.inference
    paths = [[o.path for o in p.operators if o.category == "convolution"] for p in found.profiles]
    assert paths == [["PF16"] * 2, ["F16"] * 2]


@emulated
def test_a_phone_without_sme2_is_refused_with_the_target_that_it_has(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(
        machine / "bin" / "emulator", f'#!/bin/sh\nshift 2\nexec {tools.find_qemu()} -cpu max,sme=off "$@"\n'
    )
    monkeypatch.setenv("STANDIN_QEMU", str(machine / "bin" / "emulator"))
    options = CpuRun(warmup=0, repetitions=1, host="user@board")
    with pytest.raises(EnvironmentError_, match="neither SME nor SME2; run with --target cortex-a-neon"):
        study.infer(Request(PROGRAM, timeout=300), options)
    only_neon = study.infer(Request(PROGRAM, target="cortex-a-neon", timeout=300), options)
    assert only_neon.error is None and len(only_neon.outputs) == 1
    assert np.isfinite(only_neon.outputs[0]).all()

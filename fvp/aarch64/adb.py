# SPDX-License-Identifier: Apache-2.0
"""An Android phone, by the Android debug bridge's command line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from fvp.aarch64.remote import BRIEFLY, Connection, start
from report.errors import EnvironmentError_, UsageError

VARIABLE = "ARMDEPLOY_ADB"
_INSTALL = f"install Android's platform tools (Debian: apt-get install adb), or set {VARIABLE}"
_READY = "device"
_STATES = {
    "unauthorized": ("has not authorised this computer", "confirm the question on its screen"),
    "offline": ("is offline", "reconnect it"),
}
_QUESTIONS = {
    "machine": "uname -m",
    "device": "getprop ro.product.model",
    "soc": "getprop ro.soc.model",
    "android": "getprop ro.build.version.release",
}


def find_adb() -> str | None:
    """What ``$ARMDEPLOY_ADB`` names, else PATH's adb."""
    return os.environ.get(VARIABLE) or shutil.which("adb")


def missing() -> str | None:
    """Why no phone can be reached, in one line; None when adb is there."""
    adb = find_adb()
    if adb is None:
        return f"adb is not installed; {_INSTALL}"
    return None if shutil.which(adb) else f"{adb} is no program; {_INSTALL}"


def read_devices(text: str) -> dict[str, str]:
    """State by serial number, from the text of ``adb devices``."""
    lines = (line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("*"))
    return {words[0]: words[1].strip() for words in lines if len(words) == 2 and words[0] != "List"}


def choose_serial(devices: dict[str, str], wanted: str | None) -> str:
    """The phone to use.

    Raises:
        UsageError: several are connected and none is named.
        EnvironmentError_: there is none, not the one named, or it cannot be used.
    """
    listed = ", ".join(f"{serial} ({state})" for serial, state in devices.items())
    if not devices:
        hint = "connect one with USB debugging on; adb devices must list it"
        raise EnvironmentError_("no phone is connected", where="adb", hint=hint)
    if wanted is None and len(devices) > 1:
        raise UsageError("several phones are connected", where="adb", why=listed, hint="choose with --serial")
    serial = wanted or next(iter(devices))
    if serial not in devices:
        raise EnvironmentError_(f"no phone {serial}", where="--serial", hint=f"connected: {listed}")
    if devices[serial] != _READY:
        state = devices[serial].split()[0]
        what, hint = _STATES.get(state, (f"is in state {devices[serial]!r}", "see adb devices"))
        raise EnvironmentError_(f"phone {serial} {what}", where="adb", hint=hint)
    return serial


class Adb(Connection):
    """A phone; its files go to /data/local/tmp, where programs may be executed without root.

    Raises:
        UsageError, EnvironmentError_: see `choose_serial`.
    """

    name = "adb"
    base = "/data/local/tmp/armdeploy"

    def __init__(self, serial: str | None) -> None:
        if why := missing():
            raise EnvironmentError_("no adb", why=why)
        self._adb = find_adb() or ""
        status, text = start([self._adb, "devices"], BRIEFLY)
        if status != 0:
            raise self._failure("adb devices fails", status, text)
        self._serial = choose_serial(read_devices(text), serial)
        self.place = f"phone {self._serial}"
        self._told = self.ask(_QUESTIONS)
        self.require_aarch64(self._told.pop("machine"))

    def describe(self) -> dict[str, str]:
        return self._told

    def shell(self, command: str, seconds: float) -> tuple[int | None, str]:
        return start([self._adb, "-s", self._serial, "shell", command], seconds)

    def push_command(self, files: Sequence[Path], folder: str) -> list[str]:
        return [self._adb, "-s", self._serial, "push", *map(str, files), f"{folder}/"]

    def pull_command(self, paths: Sequence[str], folder: Path) -> list[str]:
        return [self._adb, "-s", self._serial, "pull", *paths, str(folder)]

# SPDX-License-Identifier: Apache-2.0
"""Stands in for adb, ssh and scp in tests: their command lines, on a folder of this machine.

Installed under those names. What it executes for AArch64 goes through qemu-aarch64, so what a run says of
time through it is nothing about any phone or board.

Environment: STANDIN_ROOT, the folder that is the other machine; STANDIN_DEVICES, what ``adb devices`` lists;
STANDIN_QEMU, the emulator; STANDIN_FAULT, what goes wrong: "full", "unreachable", "cut" or "slow".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("STANDIN_ROOT", "."))
FAULT = os.environ.get("STANDIN_FAULT", "")
SYSTEM_FOLDERS = ("/data/local/tmp", "/sys/devices/system/cpu")
LOADER = re.compile(r"\S*/ld-linux-aarch64\.so\.1(?= --library-path)")
SLOW_SECONDS = 60


def here(path: str) -> str:
    """A path of the other machine as one of this one; a relative one is in its home folder."""
    if path.startswith(str(ROOT)):
        return path
    return str(ROOT / path.lstrip("/")) if path.startswith("/") else str(ROOT / "home" / path)


def shell(command: str) -> int:
    """Run a command as the other machine's shell does."""
    runs = LOADER.search(command) is not None
    if runs and FAULT == "cut":
        print("error: closed", file=sys.stderr)
        return 255
    if runs and FAULT == "slow":
        command = f"sleep {SLOW_SECONDS}"
    for folder in SYSTEM_FOLDERS:
        command = command.replace(folder, here(folder))
    command = LOADER.sub(lambda found: f"{os.environ['STANDIN_QEMU']} -cpu max {found.group()}", command, 1)
    home = ROOT / "home"
    environment = {**os.environ, "PATH": f"{ROOT}/bin:{os.environ['PATH']}", "HOME": str(home)}
    return subprocess.run(["sh", "-c", command], cwd=home, env=environment, check=False).returncode


def copy(sources: list[str], target: str, what: str) -> int:
    """Copy files into a folder that exists, or say why not."""
    if FAULT == "full":
        print(f"{what}: error: failed to copy '{sources[0]}': No space left on device", file=sys.stderr)
        return 1
    for source in sources:
        if not Path(source).is_file() or not Path(target).is_dir():
            print(f"{what}: error: cannot copy '{source}' to '{target}'", file=sys.stderr)
            return 1
        shutil.copy(source, target)
    return 0


def adb(words: list[str]) -> int:
    """``adb devices`` and ``adb -s SERIAL shell|push|pull …``."""
    listed = os.environ["STANDIN_DEVICES"]
    if words == ["devices"]:
        print(f"* daemon started successfully\nList of devices attached\n{listed}\n")
        return 0
    option, serial, verb, *rest = words
    if option != "-s" or f"{serial}\tdevice" not in listed.splitlines():
        print(f"error: device '{serial}' not found", file=sys.stderr)
        return 1
    if verb == "shell":
        (command,) = rest
        return shell(command)
    *sources, target = rest
    if verb == "push":
        return copy(sources, here(target), "adb")
    assert verb == "pull", f"unknown verb {verb}"
    return copy([here(source) for source in sources], target, "adb")


def without_options(words: list[str]) -> list[str]:
    """The words behind ssh's and scp's options as they are used: -q and -o NAME=VALUE."""
    while words[0].startswith("-"):
        words = words[2:] if words[0] == "-o" else words[1:]
    return words


def ssh(words: list[str]) -> int:
    """``ssh [-o …] HOST COMMAND``; 255 means that there is no connection."""
    host, command = without_options(words)
    if FAULT == "unreachable":
        print(f"ssh: connect to host {host} port 22: Connection refused", file=sys.stderr)
        return 255
    print(f"Warning: Permanently added '{host}' to the list of known hosts.", file=sys.stderr)
    return shell(command)


def scp(words: list[str]) -> int:
    """``scp [-q] [-o …] SOURCE … TARGET``, either side on HOST:."""
    *sources, target = without_options(words)
    places = [here(word.partition(":")[2]) if ":" in word else word for word in (*sources, target)]
    return copy(places[:-1], places[-1], "scp")


if __name__ == "__main__":
    with (ROOT / "log").open("a", encoding="utf-8") as log:
        log.write(f"{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}\n")
    sys.stdout.flush()
    sys.exit({"adb": adb, "ssh": ssh, "scp": scp}[Path(sys.argv[0]).name](sys.argv[1:]))

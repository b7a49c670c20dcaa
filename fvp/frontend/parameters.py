# SPDX-License-Identifier: Apache-2.0
"""The ``-C INSTANCE.PARAMETER=VALUE`` keys: one table of those with an effect, one of those without."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fvp.frontend.models import Model
from report.errors import UsageError

Value = bool | int | str


@dataclass(frozen=True)
class Parameter:
    """A parameter with an effect; its type is that of `default`."""

    key: str
    default: Value
    meaning: str


_EFFECTIVE = (
    Parameter("{npu}.num_macs", 0, "MAC units per cycle of the NPU"),
    Parameter("{npu}.extra_args", "", "options of the NPU model; --fast changes nothing here"),
    Parameter("{cpu}.semihosting-enable", True, "serve bkpt 0xab"),
    Parameter("{cpu}.semihosting-cwd", "", "folder that semihosting file names are confined to"),
    Parameter("{cpu}.semihosting-cmd_line", "", "answer to SYS_GET_CMDLINE"),
    Parameter("{cpu}.semihosting-heap_base", 0, "SYS_HEAPINFO: lowest address of the heap"),
    Parameter("{cpu}.semihosting-heap_limit", 0, "SYS_HEAPINFO: end of the heap"),
    Parameter("{cpu}.semihosting-stack_base", 0, "SYS_HEAPINFO: highest address of the stack"),
    Parameter("{cpu}.semihosting-stack_limit", 0, "SYS_HEAPINFO: end of the stack"),
    Parameter("{cpu}.INITSVTOR", -1, "address of the vector table at reset; -1 takes the application's"),
    Parameter("{peripherals}.uart0.out_file", "-", "where UART0 goes: a file, - for standard output"),
    Parameter("{peripherals}.uart0.shutdown_on_eot", False, "end the simulation at byte 0x04 on UART0"),
    Parameter("{peripherals}.uart0.shutdown_tag", "", "end the simulation at this text on UART0"),
)

_WITHOUT_EFFECT = (
    "{npu}.diagnostics",
    "{npu}.diagfile",
    "{cpu}.CFG*",
    "{cpu}.FPU",
    "{cpu}.MVE",
    "{cpu}.DSP",
    "{cpu}.semihosting-prefix",
    "{peripherals}.visualisation.*",
    "{peripherals}.telnetterminal*.*",
    "{peripherals}.uart*.*",
    "{peripherals}.hostbridge.*",
    "{peripherals}.smsc_91c111.*",
    "{peripherals}.v_path",
    "{peripherals}.DISABLE_GATING",
    "vis_hdlcd.*",
    "core_clk.mul",
)
"""Known keys, as patterns, that set what is not simulated or has nothing to be set."""


@dataclass(frozen=True)
class Parameters:
    """The values for one run.

    Attributes:
        values: by the key without its instance ("num_macs", "semihosting-cwd", "out_file" …).
        unknown: keys that the FVP may know and this platform does not.
    """

    values: Mapping[str, Value]
    unknown: tuple[str, ...]

    def text(self, name: str) -> str:
        """A value as text."""
        return str(self.values[name])

    def number(self, name: str) -> int:
        """A value as a number."""
        return int(self.values[name])

    def flag(self, name: str) -> bool:
        """A value as yes or no."""
        return bool(self.values[name])


def table(model: Model) -> list[Parameter]:
    """The parameters of `model` that have an effect, with its defaults and full keys."""
    rows = [Parameter(_full(row.key, model), row.default, row.meaning) for row in _EFFECTIVE]
    return [
        Parameter(row.key, model.macs if row.key.endswith("num_macs") else row.default, row.meaning)
        for row in rows
    ]


def _full(key: str, model: Model) -> str:
    return key.format(npu=model.npu, cpu=model.cpu, peripherals=model.peripherals)


def parse(assignments: Iterable[str], model: Model) -> Parameters:
    """The values that ``KEY=VALUE`` assignments give; later ones win.

    Raises:
        UsageError: no assignment, or a value of the wrong type.
    """
    known = {row.key: row for row in table(model)}
    ignored = [_full(pattern, model) for pattern in _WITHOUT_EFFECT]
    values = {_short(key): row.default for key, row in known.items()}
    unknown = []
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"-C {assignment!r} is no INSTANCE.PARAMETER=VALUE", where=model.program)
        key = key.strip()
        if key in known:
            values[_short(key)] = _value(_unquoted(text), known[key], model)
        elif not any(fnmatch.fnmatchcase(key, pattern) for pattern in ignored):
            unknown.append(key)
    return Parameters(values, tuple(unknown))


def _short(key: str) -> str:
    return key.rpartition(".")[2]


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _value(text: str, row: Parameter, model: Model) -> Value:
    try:
        if isinstance(row.default, bool):
            return {"0": False, "false": False, "1": True, "true": True, "0x0": False, "0x1": True}[
                text.lower()
            ]
        return int(text, 0) if isinstance(row.default, int) else text
    except (KeyError, ValueError):
        kind = "a yes or no (0, 1)" if isinstance(row.default, bool) else "a number"
        raise UsageError(f"{row.key}={text!r}: {kind} is expected", where=model.program) from None


def config_file(text: str) -> list[str]:
    """The assignments of a configuration file (``-f``): one a line, ``#`` begins a comment."""
    lines = (line.split("#", 1)[0].strip() for line in text.splitlines())
    return [line for line in lines if line]

# SPDX-License-Identifier: Apache-2.0
"""The command line of an FVP: one table of options, and what a command line asks for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fvp.frontend import parameters
from fvp.frontend.models import Model
from report.errors import UsageError


@dataclass(frozen=True)
class Option:
    """One option; `value` names its argument, empty for none; without `effect` it is taken and ignored."""

    long: str
    short: str = ""
    value: str = ""
    meaning: str = ""
    effect: bool = True


OPTIONS = (
    Option("application", "a", "[INST=]FILE", "application to load (ELF)"),
    Option("parameter", "C", "INST.PARAM=VALUE", "set a parameter; may be repeated"),
    Option("config-file", "f", "FILE", "file with parameters, one INST.PARAM=VALUE a line"),
    Option("data", "", "[INST=]FILE@[SPACE:]ADDRESS", "raw data to load at an address"),
    Option("timelimit", "", "SECONDS", "wall-clock seconds to run at most"),
    Option("cpulimit", "", "SECONDS", "taken as --timelimit"),
    Option("cyclelimit", "", "CYCLES", "virtual CPU cycles to run at most"),
    Option("simlimit", "", "SECONDS", "virtual seconds to run at most"),
    Option("stat", "", "", "print statistics at the end"),
    Option("quiet", "q", "", "no informational output"),
    Option("list-params", "l", "", "print the parameters that have an effect"),
    Option("version", "", "", "print the version"),
    Option("help", "h", "", "print this text"),
    Option("print-port-number", "p", "", "no debug server here", effect=False),
    Option("run", "R", "", "the simulation always runs at once", effect=False),
    Option("iris-server", "I", "", "no debug server here", effect=False),
    Option("iris-allow-remote", "A", "", "no debug server here", effect=False),
    Option("keep-console", "K", "", "the console is not closed", effect=False),
    Option("quantum", "Q", "TICKS", "one CPU, no quantum", effect=False),
    Option("min-sync-latency", "M", "TICKS", "one CPU, no synchronisation", effect=False),
    Option("allow-debug-plugin", "", "", "no plug-ins here", effect=False),
)


@dataclass
class Request:
    """What a command line asks for."""

    application: Path | None = None
    assignments: list[str] = field(default_factory=list)
    data: list[tuple[Path, int]] = field(default_factory=list)
    seconds: float | None = None
    cycles: int | None = None
    simulated_seconds: float | None = None
    flags: set[str] = field(default_factory=set)
    ignored: list[str] = field(default_factory=list)


def parse(arguments: Sequence[str], model: Model) -> Request:
    """Read a command line.

    Raises:
        UsageError: an unknown option, a missing or malformed argument, an unreadable configuration file.
    """
    request = Request()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            _application(word, request, model)
            continue
        option, value = _option(word, model)
        if option.value and value is None:
            if not rest:
                raise UsageError(f"{word} needs {option.value}", where=model.program)
            value = rest.pop(0)
        _take(option, value or "", request, model)
    return request


def _option(word: str, model: Model) -> tuple[Option, str | None]:
    """The option that a word names, and its argument if the word holds it."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        for option in OPTIONS:
            if option.long == name and (option.value or not equals):
                return option, value if equals else None
    else:
        for option in OPTIONS:
            if option.short and word[1:2] == option.short and (option.value or len(word) == 2):
                return option, word[2:] or None
    names = [f"--{option.long}" for option in OPTIONS]
    near = difflib.get_close_matches(word.split("=")[0], names, 1)
    hint = f"did you mean {near[0]}?" if near else "see --help"
    raise UsageError(f"unknown option {word}", where=model.program, hint=hint)


def _take(option: Option, value: str, request: Request, model: Model) -> None:
    if not option.effect:
        request.ignored.append(f"--{option.long}")
    elif option.long == "application":
        _application(value, request, model)
    elif option.long == "parameter":
        request.assignments.append(value)
    elif option.long == "config-file":
        request.assignments += parameters.config_file(_read(Path(value), model))
    elif option.long == "data":
        request.data.append(_data(value, model))
    elif option.long in ("timelimit", "cpulimit"):
        request.seconds = min(_number(option, value, model), request.seconds or float("inf"))
    elif option.long == "cyclelimit":
        request.cycles = int(_number(option, value, model))
    elif option.long == "simlimit":
        request.simulated_seconds = _number(option, value, model)
    else:
        request.flags.add(option.long)


def _application(value: str, request: Request, model: Model) -> None:
    if request.application is not None:
        raise UsageError(f"a second application {value!r}", where=model.program, why="one CPU, one image")
    request.application = Path(_without_instance(value))


def _without_instance(value: str) -> str:
    instance, equals, file = value.partition("=")
    return file if equals and "/" not in instance else value


def _data(value: str, model: Model) -> tuple[Path, int]:
    file, at, address = _without_instance(value).rpartition("@")
    try:
        if at and file:
            return Path(_unquoted(file)), int(address.rpartition(":")[2], 0)
    except ValueError:
        pass
    raise UsageError(f"--data {value!r} is no FILE@ADDRESS", where=model.program)


def _unquoted(text: str) -> str:
    return text.strip("\"'")


def _number(option: Option, value: str, model: Model) -> float:
    try:
        number = float(value)
        if number > 0:
            return number
    except ValueError:
        pass
    raise UsageError(f"--{option.long} {value!r} is no positive number", where=model.program)


def _read(path: Path, model: Model) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise UsageError(f"cannot read {path}", where=model.program, why=why) from error

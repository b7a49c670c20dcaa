# SPDX-License-Identifier: Apache-2.0
"""What the front ends print, where an FVP prints the same in the FVP's words."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from fvp.frontend import parameters
from fvp.frontend.models import Model
from fvp.frontend.options import OPTIONS, Option

OPEN_PLATFORM = "open virtual platform"
"""In every identification of the front ends, and in no identification of an FVP."""

NOTICE = f"this is armdeploy's {OPEN_PLATFORM}, not Arm's FVP"
"""Said once a run."""

STOPPED = "Info: /OSCI/SystemC: Simulation stopped by user."
TIME_LIMIT = "Info: Simulation is stopping. Reason: CPU time has been exceeded."
CYCLE_LIMIT = "Info: Simulation is stopping. Reason: Cycle limit has been exceeded."
SIMULATED_TIME_LIMIT = "Info: Simulation is stopping. Reason: Simulated time has been exceeded."
"""Lines that scripts look for."""

_RULE_WIDTH = 80
_UNKNOWN = "n/a"


def version(model: Model) -> str:
    """Answer to ``--version``."""
    from importlib import metadata  # slow to import

    try:
        release = metadata.version("armdeploy")
    except metadata.PackageNotFoundError:
        release = "(not installed)"
    return f"{model.program}: {OPEN_PLATFORM} of armdeploy {release}, not Arm's FVP"


def usage(model: Model) -> str:
    """Answer to ``--help``."""
    rows = [f"  {_names(option):<44} {option.meaning}" for option in OPTIONS]
    head = f"usage: {model.program} [options] -a FILE\n\nRuns an application on the {OPEN_PLATFORM}.\n"
    exits = (
        "Exit code: the application's own (semihosting exit), 0 at the end mark on UART0 and at\n"
        "--cyclelimit and --simlimit, 7 at --timelimit, else as `armdeploy --help` lists."
    )
    return "\n".join([head, *rows, "", exits])


def _names(option: Option) -> str:
    short = f"-{option.short}, " if option.short else "    "
    return f"{short}--{option.long} {option.value}".rstrip()


def parameter_list(model: Model) -> str:
    """Answer to ``--list-params``, in the form that ``-f`` reads."""
    rows = []
    for row in parameters.table(model):
        default = int(row.default) if isinstance(row.default, bool) else row.default
        rows.append(f"{f'{row.key}={default}':<60} # {row.meaning}")
    return "\n".join(["# Parameters:", *rows])


def stop_lines(limit: str, virtual_seconds: float) -> Iterator[str]:
    """Lines at the end of a simulation; `limit` is a limit's line or empty."""
    yield ""
    if limit:
        yield limit
        yield ""
    yield STOPPED
    yield f"[warning ][main@0][{round(virtual_seconds * 1e9):02d} ns] Simulation stopped by user"


def statistics(model: Model, virtual_seconds: float, wall_seconds: float) -> Iterator[str]:
    """Lines of ``--stat``. Nobody counts instructions here, so there are none and no rate of them."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    memory = 1024 * sum(usage.ru_maxrss for usage in used)
    yield ""
    yield f"--- {model.instance} statistics: ".ljust(_RULE_WIDTH, "-")
    yield _row("Simulated time", f"{virtual_seconds:.6f}s")
    yield _row("User time", f"{sum(usage.ru_utime for usage in used):.6f}s")
    yield _row("System time", f"{sum(usage.ru_stime for usage in used):.6f}s")
    yield _row("Wall time", f"{wall_seconds:.6f}s")
    yield _row("Performance index", f"{virtual_seconds / wall_seconds:.2f}")
    yield _row(f"{model.instance}.cpu0", f"{_UNKNOWN:>6} MIPS ({_UNKNOWN:>12} Inst)")
    yield _row("Memory highwater mark", f"{memory:#x} bytes ( {memory / 2**30:.3f} GB )")
    yield "-" * _RULE_WIDTH


def _row(name: str, value: str) -> str:
    return f"{name:<40}: {value}"

# SPDX-License-Identifier: Apache-2.0
"""Which platforms there are, and which one runs a target."""

from __future__ import annotations

from fvp.aarch64.platform import Aarch64Emulated, Aarch64Native, OverAdb, OverSsh
from fvp.arm.platform import ArmFvp
from fvp.host.platform import HostPlatform
from fvp.platform import Platform
from fvp.virtual.run import VirtualCorstone
from report.errors import EnvironmentError_, UsageError

_ALL: tuple[type[Platform], ...] = (
    *(ArmFvp, VirtualCorstone, HostPlatform),
    *(Aarch64Native, Aarch64Emulated, OverSsh, OverAdb),
)

PLATFORMS: dict[str, type[Platform]] = {platform.name: platform for platform in _ALL}
"""By name, in the order of preference of ``--platform auto``."""

AUTO = "auto"


def choose(name: str, target: str, runner: str | None = None) -> tuple[Platform, str]:
    """The platform called `name` for `target`, and a warning or "".

    Args:
        runner: the firmware that is to run; None takes the platform's default.

    ``auto`` takes the first that can run the target; the warning says why a preferred one cannot.

    Raises:
        UsageError: no platform of that name.
        EnvironmentError_: it cannot run the target here; the message says why.
    """
    if name != AUTO and name not in PLATFORMS:
        raise UsageError(
            f"unknown platform {name!r}", where="--platform", hint=f"known: {AUTO}, {', '.join(PLATFORMS)}"
        )
    reasons: list[str] = []
    for candidate in map(PLATFORMS.__getitem__, _automatic(target) if name == AUTO else [name]):
        known = target in candidate.capabilities.targets
        reason = candidate.available_for(target, runner) if known else f"it does not run {target}"
        if reason is None:
            return candidate(), "; ".join(reasons)
        if not candidate.optional or name != AUTO:
            reasons.append(f"not run on {candidate.name}: {reason}")
    raise EnvironmentError_(
        f"no platform can run {target} here", why="; ".join(reasons), hint="see armdeploy doctor"
    )


def _automatic(target: str) -> list[str]:
    return [name for name in names_for(target) if not PLATFORMS[name].on_request]


def names_for(target: str) -> list[str]:
    """The platforms that know `target`, installed or not."""
    return [name for name, platform in PLATFORMS.items() if target in platform.capabilities.targets]

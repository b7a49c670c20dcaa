# SPDX-License-Identifier: Apache-2.0
"""The names that `--model` takes, told apart without torch: a wrong one is refused at once."""

from __future__ import annotations

import pkgutil
from difflib import get_close_matches
from pathlib import Path

from report.errors import UsageError

TORCHVISION = "torchvision:"
"""Prefix of a model that torchvision has."""

FILES = (".py", ".pt2", ".pt", ".pth")
"""Suffixes of files that hold a model."""


def example_names() -> list[str]:
    """Names of the bundled examples."""
    import examples

    names = [module.name for module in pkgutil.iter_modules(examples.__path__)]
    return sorted(name for name in names if not name.startswith("_"))


def check_source(source: str) -> None:
    """Refuse what can name no model.

    Raises:
        UsageError: a file that is not there, or nothing of that name; the message offers the nearest.
    """
    if source.startswith(TORCHVISION):
        return
    if Path(source).suffix in FILES:
        if not Path(source).is_file():
            raise UsageError(f"no such file: {source}", where="--model")
        return
    names = example_names()
    if source in names:
        return
    near = get_close_matches(source, names, n=1)
    raise UsageError(
        f"unknown model {source!r}",
        where="--model",
        hint=(f"did you mean {near[0]}? " if near else "")
        + f"bundled: {', '.join(names)}; or give FILE.py, FILE.pt2, torchvision:NAME",
    )

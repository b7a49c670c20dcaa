# SPDX-License-Identifier: Apache-2.0
"""Entry point of the programs in `fvp/bin`: finds the project and its packages without an installation.

Started as ``python -I -S start.py PROGRAM ARGUMENT...``: without the environment's Python settings (callers
set PYTHONHOME for the FVP they think this is) and without site's start-up work.
"""

import sys
from pathlib import Path


def _paths() -> list[str]:
    root = Path(__file__).resolve().parents[2]
    packages = sorted(str(folder) for folder in root.glob(".venv/lib/python3*/site-packages"))
    return [str(root), *packages]


if __name__ == "__main__":
    sys.path += _paths()
    from fvp.frontend.session import main

    sys.exit(main(sys.argv[1], sys.argv[2:]))

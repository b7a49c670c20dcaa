# SPDX-License-Identifier: Apache-2.0
"""Makes a script of ours work in a fresh clone: sets up what is missing, then runs it again in .venv.

Standard library only, because nothing else may be there yet.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_AGAIN = "ARMDEPLOY_BOOTSTRAPPED"
"""Set in the environment of the second start, so that a broken set-up cannot loop."""


def ensure(modules: tuple[str, ...]) -> None:
    """Return when all `modules` can be imported; otherwise start the script again where they can.

    Runs ``setup.sh`` first when there is no ``.venv``; ends the process with its exit code when it fails, and
    with 3 when modules stay missing.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if not missing:
        return
    python = _ROOT / ".venv" / "bin" / "python"
    setup = _ROOT / "setup.sh"
    if os.environ.get(_AGAIN) or not (python.exists() or setup.exists()):
        raise SystemExit(_give_up(missing))
    if not python.exists():
        print(f"{', '.join(missing)} not installed: running ./setup.sh", file=sys.stderr)
        code = subprocess.run([str(setup)], stdout=sys.stderr, check=False).returncode
        if code:
            raise SystemExit(code)
    os.environ[_AGAIN] = "1"
    os.execv(python, [str(python), *sys.argv])


def _give_up(missing: list[str]) -> int:
    hint = 'run ./setup.sh, or pip install "executorch[ethos-u]==1.5.1"'
    print(f"error: not installed: {', '.join(missing)}; {hint}", file=sys.stderr)
    return 3

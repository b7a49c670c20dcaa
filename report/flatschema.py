# SPDX-License-Identifier: Apache-2.0
"""FlatBuffers classes made from the schemas that the executorch wheel ships.

Importing ``executorch.exir`` to read a file costs seconds (it loads torch's compiler stack). The
schema and its compiler, ``flatc``, are plain files in the same wheel, so the classes are generated
from them in some milliseconds instead; a reader can therefore never disagree with the pinned version.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from report.errors import EnvironmentError_

PROGRAM = "schema/program.fbs"
BUNDLED_PROGRAM = "devtools/bundled_program/schema/bundled_program_schema.fbs"
ETDUMP = "devtools/etdump/etdump_schema_flatcc.fbs"
XNNPACK = "backends/xnnpack/serialization/schema.fbs"


@lru_cache(maxsize=1)
def executorch_dir() -> Path:
    """Folder of the installed executorch wheel, found without importing it.

    Raises:
        EnvironmentError_: executorch is not installed.
    """
    spec = importlib.util.find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentError_(
            "executorch is not installed",
            hint='pip install "executorch[ethos-u]==1.5.1", or run ./setup.sh',
        )
    return Path(next(iter(spec.submodule_search_locations)))


@lru_cache(maxsize=8)
def classes(schema: str) -> ModuleType:
    """The object-API classes (``ProgramT`` …) of one schema file of the wheel.

    Args:
        schema: path of the .fbs below the wheel's folder, one of the names above.

    Raises:
        EnvironmentError_: the wheel lacks the schema or flatc, or flatc failed.
    """
    root = executorch_dir()
    flatc = root / "data" / "bin" / ("flatc.exe" if sys.platform == "win32" else "flatc")
    with tempfile.TemporaryDirectory(prefix="armdeploy-schema-") as out:
        command = [str(flatc), "--python", "--gen-object-api", "--gen-onefile", "-o", out, str(root / schema)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", "") or str(error)
            raise EnvironmentError_(
                "cannot read the .pte schema", where=str(root / schema), why=why, hint="reinstall executorch"
            ) from error
        return _load(Path(out) / f"{Path(schema).stem}_generated.py")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

# SPDX-License-Identifier: Apache-2.0
"""Lowered models kept between test runs: exporting one takes seconds, all that follows milliseconds."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

from oracle import one_idea, streams

_TOOLS = ("torch", "executorch", "torchao", "tosa-tools")


class LoweredModels:
    """TOSA graphs of the one-idea models, in a folder named after everything that they depend on.

    Several processes may share the folder: a result appears by renaming, complete or not at all.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / _fingerprint()

    def delegates(self, name: str, npu: str) -> tuple[bytes, ...]:
        """The TOSA graph of each delegate of `MODELS[name]` for `npu`; may be empty."""
        folder = self._folder / f"{name}.{streams.specification(npu)}"
        if not folder.exists():
            self._store(folder, lower(name, npu))
        return tuple(path.read_bytes() for path in sorted(folder.iterdir()))

    def _store(self, folder: Path, graphs: tuple[bytes, ...]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=self._folder, prefix=".new-"))
        for number, graph in enumerate(graphs):
            (temporary / f"{number:03}.tosa").write_bytes(graph)
        try:
            os.replace(temporary, folder)
        except OSError:  # another process was first; its result is the same
            for path in temporary.iterdir():
                path.unlink()
            temporary.rmdir()


def lower(name: str, npu: str) -> tuple[bytes, ...]:
    """Build, quantise and lower one model of the table."""
    model = one_idea.MODELS[name]
    module, inputs = model.make()
    return streams.lower(module, inputs, npu, model.bits)


@cache
def _fingerprint() -> str:
    digest = hashlib.sha256()
    for module in (one_idea, streams):
        digest.update(Path(module.__file__).read_bytes())
    digest.update(repr([(tool, version(tool)) for tool in _TOOLS]).encode())
    return digest.hexdigest()[:16]

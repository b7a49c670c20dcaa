# SPDX-License-Identifier: Apache-2.0
"""Write one-idea models as folders, for work on the NPU model.

A folder has model.tosa, vela.bin, vela.npz, input-N.npy, expected-N.npy and meta.json.

python -m oracle.dump FOLDER [--models REGEXP] [--npus NPU,...]       (from tests/)
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np

from oracle import reference, streams
from oracle.cache import LoweredModels
from oracle.one_idea import MODELS, Model

# Where the tests keep lowered models.
_PYTEST_CACHE = Path(__file__).parents[2] / ".pytest_cache" / "d" / "oracle"


def write_case(folder: Path, tosa: bytes, meta: dict[str, object], model: Model) -> None:
    """Write one delegate for one NPU with inputs and the outputs of the reference model."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = reference.random_inputs(tosa, seed=1, index_limit=model.index_limit)
    for name, arrays in (("input", inputs), ("expected", reference.run_reference(tosa, inputs))):
        for number, array in enumerate(arrays):
            np.save(folder / f"{name}-{number}.npy", array)
    (folder / "model.tosa").write_bytes(tosa)
    (folder / "vela.bin").write_bytes(
        streams.compile_tosa(tosa, str(meta["npu"]), keep=folder, flags=model.flags)
    )
    shutil.move(folder / "output" / "out_vela.npz", folder / "vela.npz")
    (folder / "meta.json").write_text(json.dumps(meta, indent=1))


def dump_model(root: Path, name: str, npu: str) -> None:
    """Write every delegate of a model for one NPU."""
    graphs = LoweredModels(_PYTEST_CACHE).delegates(name, npu)
    print(f"{name} {npu}: {len(graphs)} delegate(s)", file=sys.stderr)
    for number, tosa in enumerate(graphs):
        folder = root / (f"{name}__{npu}" if number == 0 else f"{name}.{number}__{npu}")
        meta = {"model": name, "npu": npu, "delegate": number, "delegates": len(graphs)}
        write_case(folder, tosa, meta, MODELS[name])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", default="")
    parser.add_argument("--npus", default=",".join(streams.NPUS))
    parser.add_argument("--missing", action="store_true", help="only what has no folder yet")
    options = parser.parse_args()
    for name, npu in itertools.product(
        filter(re.compile(options.models).search, MODELS), options.npus.split(",")
    ):
        if options.missing and Path(options.folder, f"{name}__{npu}").exists():
            continue
        try:
            dump_model(options.folder, name, npu)
        except Exception as error:
            print(f"{name} {npu}: {error!r}"[:2000], file=sys.stderr)


if __name__ == "__main__":
    main()

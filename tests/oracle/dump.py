# SPDX-License-Identifier: Apache-2.0
"""Write one-idea models as folders, for work on the NPU model.

A folder has model.tosa, vela.bin, vela.npz, input-N.npy, expected-N.npy and meta.json.

python -m oracle.dump FOLDER [--models REGEXP] [--npus NPU,...]       (from tests/)
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np

from oracle import reference, streams
from oracle.cache import lower
from oracle.one_idea import MODELS, Model


def write_case(folder: Path, tosa: bytes, meta: dict[str, object], index_limit: int) -> None:
    """Write one delegate for one NPU with inputs and the outputs of the reference model."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = reference.random_inputs(tosa, seed=1, index_limit=index_limit)
    for name, arrays in (("input", inputs), ("expected", reference.run_reference(tosa, inputs))):
        for number, array in enumerate(arrays):
            np.save(folder / f"{name}-{number}.npy", array)
    (folder / "model.tosa").write_bytes(tosa)
    (folder / "vela.bin").write_bytes(streams.compile_tosa(tosa, str(meta["npu"]), keep=folder))
    shutil.move(folder / "output" / "out_vela.npz", folder / "vela.npz")
    (folder / "meta.json").write_text(json.dumps(meta, indent=1))


def dump_model(root: Path, name: str, model: Model, npus: list[str]) -> None:
    """Lower once per TOSA specification and compile for each of the NPUs."""
    lowered: dict[str, tuple[bytes, ...]] = {}
    for npu in npus:
        key = streams.SPECIFICATION_NPU[streams.family(npu)]
        if key not in lowered:
            lowered[key] = lower(name, npu)
            print(f"{name} {key}: {len(lowered[key])} delegate(s)", file=sys.stderr)
        for number, tosa in enumerate(lowered[key]):
            folder = root / (f"{name}__{npu}" if number == 0 else f"{name}.{number}__{npu}")
            meta = {"model": name, "npu": npu, "delegate": number, "delegates": len(lowered[key])}
            try:
                write_case(folder, tosa, meta, model.index_limit)
            except (streams.VelaRejection, ValueError) as error:
                print(f"{name} {npu} delegate {number}: {error}", file=sys.stderr)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", default="")
    parser.add_argument("--npus", default=",".join(streams.NPUS))
    parser.add_argument("--missing", action="store_true", help="only models without a folder for these NPUs")
    options = parser.parse_args()
    for name, model in MODELS.items():
        npus = options.npus.split(",")
        if options.missing:
            npus = [npu for npu in npus if not Path(options.folder, f"{name}__{npu}").exists()]
        if npus and re.search(options.models, name):
            try:
                dump_model(options.folder, name, model, npus)
            except Exception as error:
                print(f"{name}: {error!r}"[:2000], file=sys.stderr)


if __name__ == "__main__":
    main()

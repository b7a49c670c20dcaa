# SPDX-License-Identifier: Apache-2.0
"""Our runner and Arm's firmware on the same programs: equal outputs and equal NPU counters.

    python -m tests.validation.runners [--models ds_cnn,unet] [--folder out/runners]

Counters by port depend on where the scratch is. Arm's image for Corstone-320 was built for
Dedicated_Sram_384KB and puts it in external memory whatever the program was compiled for, so our runner is
built the same way here; on Corstone-300 both use Shared_Sram.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armdeploy.main import main as armdeploy
from fvp.inputs import random_inputs
from fvp.platform import Job, Outcome
from fvp.virtual.run import FIRMWARES, VirtualCorstone
from report import pte
from report.tables import table
from tests.validation.examples_matrix import FOR_ETHOS_U

PLACEMENTS = {"ethos-u85-256": "Dedicated_Sram_384KB", "ethos-u55-128": "Shared_Sram"}
"""Memory mode that Arm's image was built for, by the target it runs."""


@dataclass(frozen=True)
class Comparison:
    """One program in both firmwares; `differences` names what is not the same."""

    model: str
    target: str
    counters: int
    npu_active: int | None
    differences: tuple[str, ...]


def compare(model: str, target: str, program: Path, seed: int = 0) -> Comparison:
    """Run `program` on random inputs in each firmware."""
    ours, arms = (_run(program, target, runner, seed) for runner in FIRMWARES)
    pairs = zip(ours.outputs, arms.outputs, strict=True)
    differences = [f"output {i}" for i, (a, b) in enumerate(pairs) if a.tobytes() != b.tobytes()]
    known = {n for n in ours.counters.keys() & arms.counters.keys() if ours.counters[n] is not None}
    differences += [
        f"{n} {ours.counters[n]} against {arms.counters[n]}"
        for n in sorted(known)
        if ours.counters[n] != arms.counters[n]
    ]
    return Comparison(model, target, len(known), ours.counters.get("npu_active"), tuple(differences))


def _run(program: Path, target: str, runner: str, seed: int) -> Outcome:
    method = pte.load(program).method()
    specs = tuple((t.shape, np.dtype(t.dtype)) for t in method.tensors(method.outputs))
    inputs = random_inputs(method.tensors(method.inputs), seed)
    job = Job(program, target, inputs, 300.0, False, specs, runner, PLACEMENTS[target])
    return VirtualCorstone().run(job)


def compile_example(model: str, folder: Path) -> dict[str, Path]:
    """The program for each target; compiled unless it is in the folder."""
    paths = {target: folder / f"{model}_arm_delegate_{target}.pte" for target in PLACEMENTS}
    if not all(path.exists() for path in paths.values()):
        code = armdeploy(["compile", "-m", model, "-t", ",".join(PLACEMENTS), "-o", str(folder)])
        if code:
            raise SystemExit(code)
    return paths


def comparisons(models: list[str], folder: Path) -> Iterator[Comparison]:
    """Every model on both boards."""
    for model in models:
        for target, program in compile_example(model, folder).items():
            yield compare(model, target, program)


def main() -> int:
    """Print the table; 1 when anything differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(FOR_ETHOS_U))
    parser.add_argument("--folder", type=Path, default=Path("out/runners"))
    arguments = parser.parse_args()
    found = list(comparisons(arguments.models.split(","), arguments.folder))
    rows = [vars(c) | {"differences": ", ".join(c.differences) or "none"} for c in found]
    print(table(rows))
    return int(any(c.differences for c in found))


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Bundled examples on the Cortex-A targets under emulation: instructions, kernels, output checks.

    python tests/validation/cortex_a_examples.py [--records DIR] [--dtype TYPE …] [--timeout S] [MODEL …]

compiles each model in each type once, runs it as cortex-a-sme2, cortex-a-sme and cortex-a-neon, keeps the run
records in DIR, and prints the table of docs/validation.md. A record that is there already is not made again:
an interrupted run goes on where it was. Exit code 1 when a run fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aot import compile as aot_compile
from fvp.aarch64 import study
from fvp.inference import Request
from report.cortex_a import TARGETS
from report.tables import table

MODELS = ("ds_cnn", "unet_small", "mobilenet_v2")
DTYPES = ("fp32", "fp16", "int8", "int8-dynamic")


def compiled(model: str, dtype: str, folder: Path) -> Path:
    """The program of `model` in `dtype`; it is the same for all targets."""
    parser = argparse.ArgumentParser()
    aot_compile.add_arguments(parser)
    words = ["-m", model, "--dtype", dtype, "-t", "cortex-a-sme2", "-o", str(folder)]
    ((program, _report),) = aot_compile.compile_models(parser.parse_args(words))
    return program


def record(model: str, dtype: str, target: str, folder: Path, timeout: float) -> dict[str, Any]:
    """The run record of one line of the table, made unless it is there."""
    path = folder / f"{model}_{dtype}_{target}.json"
    if not path.exists():
        program = folder / f"{model}_{dtype}_xnnpack_cortex-a-sme2.pte"
        if not program.exists():
            compiled(model, dtype, folder)
        started = time.monotonic()
        found = study.infer(Request(program, target=target, timeout=timeout, output_dir=folder / "out"))
        print(f"{path.name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
        path.write_text(found.record.to_json() + "\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def row(model: str, dtype: str, records: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Instructions of one inference by instruction set, and what the checks of all three runs said."""
    counts = {isa: profile["inference"] for r in records.values() for isa, profile in r["profile"].items()}
    checks = [check for r in records.values() for check in r["checks"]]
    evidence = [c["detail"] for c in checks if c["name"] == "kernels with SME2"]
    return {
        "model": model,
        "type": dtype,
        **{isa: counts.get(isa) for isa in ("sme2", "sme", "neon")},
        "neon / sme2": f"{counts['neon'] / counts['sme2']:.2f}"
        if {"neon", "sme2"} <= counts.keys()
        else None,
        "kernels": evidence[0] if evidence else None,
        "output": next((c["detail"] for c in checks if c["name"] == "output"), "none"),
        "failed": ", ".join(sorted({c["name"] for c in checks if c["result"] == "fail"})) or "nothing",
        "NEON counted alike": same_neon(records.values()),
    }


def same_neon(records: Sequence[Mapping[str, Any]] | Any) -> str:
    """Whether every run of the program with NEON counted the same, operator by operator."""
    found = [
        [o["cost"] for o in r["profile"]["neon"]["operators"]] for r in records if "neon" in r["profile"]
    ]
    return f"yes, {len(found)} runs" if all(costs == found[0] for costs in found) else "no"


def main() -> int:
    """Make what is missing, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--records", type=Path, default=Path("out/cortex_a"))
    parser.add_argument("--dtype", action="append", choices=DTYPES)
    parser.add_argument("--timeout", type=float, default=3600.0)
    arguments = parser.parse_args()
    arguments.records.mkdir(parents=True, exist_ok=True)
    rows, codes = [], [0]
    for model in arguments.models:
        for dtype in arguments.dtype or DTYPES:
            made = {t: record(model, dtype, t, arguments.records, arguments.timeout) for t in TARGETS}
            codes += [r["exit"]["code"] for r in made.values()]
            rows.append(row(model, dtype, made))
    print(table(rows))
    return int(max(codes) != 0)


if __name__ == "__main__":
    sys.exit(main())

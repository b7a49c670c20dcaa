# SPDX-License-Identifier: Apache-2.0
"""Mutation audit: plants one fault at a time in a copy of npu/ and runs the check that must notice it.

    python tests/npu/audit.py [--only REGEXP] [--lists FOLDER] [--json FILE]

Every check passes first on the unchanged copy. A check is a pytest selection, or operators of the quick
or full conformance set (names by regular expression). Exit code 0 when every fault is caught, else 5.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTS = ROOT.parent / "shared" / "data" / "tosa"
_COPIED = ("npu", "tests", "report", "fvp", "pyproject.toml")


@dataclass(frozen=True)
class Fault:
    """A replacement of one text, which occurs once in the file, and the check that must turn red.

    Attributes:
        check: "quick:REGEXP" or "full:REGEXP" (tests of a published list), or arguments of pytest.
    """

    name: str
    file: str
    old: str
    new: str
    check: str


_ORDER, _SCALING, _STATE = "weights/order.py", "scaling.py", "state.py"
_ELEMENTWISE, _POOL = "ops/elementwise.py", "ops/pool.py"
_RARE = "tests/npu/test_rare.py"

FAULTS = (
    Fault(
        "natural rounding truncates",
        _SCALING,
        "        return half, half\n    if rounding is Rounding.DOUBLE_SYMMETRIC",
        "        return 0, 0\n    if rounding is Rounding.DOUBLE_SYMMETRIC",
        "quick:rescale|roundTrue",
    ),
    Fault(
        "double rounding adds its term on both sides",
        _SCALING,
        "return half + extra, half - extra",
        "return half + extra, half + extra",
        "quick:FU2/",
    ),
    Fault(
        "rounding symmetric in half of the cases",
        _SCALING,
        "return half, half - 1",
        "return half, half",
        "tests/npu/test_scaling.py",
    ),
    Fault(
        "double round parameter 19 instead of 20",
        _STATE,
        "{1: 20, 2: 15}",
        "{1: 19, 2: 15}",
        f"{_RARE} -k scaled_add",
    ),
    Fault(
        "implied shift 20 instead of 19", _STATE, "{1: 19, 2: 14}", "{1: 20, 2: 14}", f"{_RARE} -k scaled_add"
    ),
    Fault(
        "bias of 40 bits read as 32",
        "weights/scales.py",
        "_EARLY = _EntryFormat(5, 4, 32)",
        "_EARLY = _EntryFormat(4, 4, 32)",
        "tests/npu/test_scales.py",
    ),
    Fault(
        "no snake over IFM blocks", _ORDER, "        snake=True,", "        snake=False,", "quick:16x16x70"
    ),
    Fault("odd rows not reversed", _ORDER, "[:: -1 if row % 2 else 1]", "[:: 1]", "quick:conv2d_3x3"),
    Fault(
        "no stride phases",
        _ORDER,
        "(layout.stride_y, layout.stride_x) if strided else (1, 1)",
        "(1, 1) if strided else (1, 1)",
        "quick:conv2d.*_st(12|21|22|33)",
    ),
    Fault(
        "row and column strides exchanged",
        "ops/conv.py",
        "kernel.stride_y * stride_y,\n            kernel.stride_x * stride_x,",
        "kernel.stride_x * stride_y,\n            kernel.stride_y * stride_x,",
        "quick:conv2d.*_st(12|21)",
    ),
    Fault(
        "zero point added",
        "ops/conv.py",
        "-op.ifm.zero_point * weights.sums",
        "op.ifm.zero_point * weights.sums",
        "quick:/conv2d",
    ),
    Fault(
        "padding counted by averages",
        _POOL,
        "((places >= before) & (places < end))",
        "(places > -99)",
        "quick:avg_pool2d",
    ),
    Fault(
        "exact reciprocal",
        _POOL,
        "((1 << (bits + exponent)) + (1 << exponent))",
        "(1 << (bits + exponent))",
        "quick:avg_pool2d",
    ),
    Fault(
        "argmax takes the last of equal ones",
        _POOL,
        "better = part > best",
        "better = part >= best",
        f"{_RARE} -k argmax",
    ),
    Fault(
        "table one entry off",
        "ops/functions.py",
        "np.roll(table, -128)",
        "np.roll(table, -127)",
        "quick:table",
    ),
    Fault(
        "interpolation truncates",
        "ops/functions.py",
        "((slope * fraction + 64) >> 7)",
        "((slope * fraction) >> 7)",
        f"{_RARE} -k interpolates",
    ),
    Fault(
        "broadcast flags in another order",
        _STATE,
        'for axis in "hwc"]',
        'for axis in "whc"]',
        "quick:add|sub|mul|maximum|minimum|select",
    ),
    Fault(
        "transpose WCH inverted",
        _STATE,
        "isa.Transpose.WCH: (1, 2, 0)",
        "isa.Transpose.WCH: (2, 0, 1)",
        "full:X/transpose/",
    ),
    Fault(
        "reverse along the next axis",
        "execution.py",
        "np.flip(array, op.reverse - isa.Reverse.H)",
        "np.flip(array, (op.reverse - isa.Reverse.H + 1) % 3)",
        "quick:reverse",
    ),
    Fault(
        "logical shift at 64 bits",
        _ELEMENTWISE,
        "(a & ((1 << 8 * op.ifm.dtype.itemsize) - 1)) >>",
        "a >>",
        "quick:logical_right_shift",
    ),
    Fault(
        "comparison gives one",
        _ELEMENTWISE,
        "-comparison(a, b)",
        "comparison(a, b)",
        "quick:select|reduce_all",
    ),
    Fault(
        "operands exchanged after scaling",
        _ELEMENTWISE,
        "        maps.reverse()  #",
        "        maps = maps  #",
        f"{_RARE} -k exchanged",
    ),
    Fault(
        "product of 32 bits uses the multiplier",
        _ELEMENTWISE,
        "replace(op.ofm_scale, multiplier=1)",
        "op.ofm_scale",
        f"{_RARE} -k product",
    ),
    Fault(
        "clip off saturates",
        _STATE,
        'clip = None if state.value("ACTIVATION", "clip_off") else',
        "clip =",
        "quick:cast|left_shift",
    ),
    Fault(
        "kept accumulator forgotten",
        "ops/window.py",
        "acc = combine(acc, run.accumulator)",
        "acc = acc",
        "quick:conv2d_20x3|st33|max_pool2d_1x40|accumulator",
    ),
    Fault(
        "gather ignores the indices",
        "ops/dma.py",
        "        column = indices\n",
        "        column = np.arange(transfer.size0)\n",
        "quick:gather",
    ),
    Fault(
        "lower tile at the right tile's base",
        "featuremap.py",
        "self.bases[column + 2]",
        "self.bases[column + 1]",
        "tests/npu/test_featuremap.py",
    ),
    Fault(
        "branch taken on zero",
        "machine.py",
        "and not self._last_result()",
        "and self._last_result()",
        "quick:while_loop",
    ),
    Fault(
        "nearest rounds down",
        "ops/resize.py",
        "(2 * _positions(count, resize) + resize.denominator)",
        "(2 * _positions(count, resize))",
        "quick:resize",
    ),
)


class Sandbox:
    """A copy of the sources in which faults are planted, and the checks run."""

    def __init__(self, folder: Path, lists: Path):
        self._folder, self._lists = folder, lists
        self._work = folder / "conformance"
        for name in _COPIED:
            source, target = ROOT / name, folder / "copy" / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        self.copy = folder / "copy"
        (folder / "shared").symlink_to(lists.parents[1])

    def passes(self, check: str) -> bool:
        """The check is green."""
        kind, _, argument = check.partition(":")
        if kind in ("quick", "full"):
            command = ["-m", "tests.conformance.run", "--set", kind, "--only", argument]
            command += ["--out", str(self._work), "--lists", str(self._lists)]
            (self._work / "verdicts.jsonl").unlink(missing_ok=True)
        else:
            command = ["-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *_split(check)]
        environment = os.environ | {"ARMDEPLOY_CACHE": "off", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, *command], cwd=self.copy, env=environment, capture_output=True)
        return done.returncode == 0

    def catches(self, fault: Fault) -> bool:
        """The fault's check is red with the fault planted.

        Raises:
            ValueError: the text to replace is not there exactly once.
        """
        path = self.copy / "npu" / fault.file
        text = path.read_text()
        if text.count(fault.old) != 1:
            raise ValueError(f"{fault.name}: {fault.file} has the text {text.count(fault.old)} times")
        path.write_text(text.replace(fault.old, fault.new))
        try:
            return not self.passes(fault.check)
        finally:
            path.write_text(text)


def _split(check: str) -> list[str]:
    files, _, selection = check.partition(" -k ")
    return [*files.split(), *(["-k", selection.strip("'")] if selection else [])]


def audit(sandbox: Sandbox, faults: tuple[Fault, ...]) -> Iterator[tuple[Fault, bool]]:
    """(fault, caught) one after the other.

    Raises:
        RuntimeError: a check fails without any fault.
    """
    for check in dict.fromkeys(fault.check for fault in faults):
        if not sandbox.passes(check):
            raise RuntimeError(f"check {check} fails without a fault")
    for fault in faults:
        yield fault, sandbox.catches(fault)


def main() -> int:
    """Command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--only", default="", help="regular expression that a fault's name must contain")
    parser.add_argument("--lists", type=Path, default=LISTS, help="folder of quick.json")
    parser.add_argument("--json", type=Path, help="write the result here")
    options = parser.parse_args()
    faults = tuple(fault for fault in FAULTS if re.search(options.only, fault.name))
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for fault, caught in audit(Sandbox(Path(folder), options.lists), faults):
            results[fault.name] = caught
            word = "caught" if caught else "MISSED"
            print(f"{word}  {fault.name}  ({fault.file}; {fault.check})", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{sum(results.values())} of {len(results)} caught")
    return 0 if all(results.values()) else 5


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The layout advisor's document: where a program's partitions are split, what that costs, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import compile_report, layout, pte, xnnpack
from report.errors import UsageError
from report.layout import Outside
from report.tables import table

_RETRAIN = "normalise after the convolution, before the activation (conv -> norm -> act), and train again"


@dataclass(frozen=True)
class _Rule:
    """What to do about the operators `names` (as kernels are registered), where `applies`."""

    names: frozenset[str]
    advice: str
    applies: Callable[[Outside], bool] = lambda _operator: True


_BATCH_NORM = "aten::_native_batch_norm_legit_no_training.out"

_FOLDS = "XNNPACK folds it into the convolution right before it, unless --keep-out batch_norm forbids it"

_RULES = (
    _Rule(
        frozenset({_BATCH_NORM}),
        f"--fix-layout: as a depthwise 1x1 convolution it stays in the partition; to save that one as well, "
        f"{_RETRAIN}",
        lambda operator: len(operator.shape) == 4,
    ),
    _Rule(
        frozenset({"aten::gelu.out"}),
        "--approximate-gelu: x * sigmoid(1.702 x) in its place, not quite the same function; fp32 and int8 "
        "keep GELU in the partition",
        lambda operator: operator.dtype == "float16",
    ),
    _Rule(
        frozenset({"aten::native_layer_norm.out", "aten::native_group_norm.out"}),
        f"no pass: it takes its statistics from the data. With batch norm in its place, {_RETRAIN}",
    ),
    _Rule(
        frozenset({"aten::expand_copy.out"}),
        "no pass: it repeats or only copies a tensor; give torch.matmul tensors of 3 dimensions, or of equal "
        "batches through torch.bmm",
    ),
)

_OTHERWISE = "no pass: move it to an end of the model, or write it with operators that XNNPACK takes"


def advice_for(operator: Outside, *, folds: bool = False) -> str:
    """What removes `operator` from between two partitions; a norm may be one that `folds`."""
    if folds:
        return _FOLDS
    rules = (rule for rule in _RULES if operator.name in rule.names and rule.applies(operator))
    return next((rule.advice for rule in rules), _OTHERWISE)


def document(path: Path) -> dict[str, Any]:
    """Splits of the .pte at `path`, their cost and their remedy, JSON-ready; sizes in bytes.

    What only the compile report beside it tells (module, source line, reason) is None without it.

    Raises:
        UsageError: no program, one for another backend, or a damaged delegate.
    """
    method = pte.load(path).method()
    others = sorted({delegate.backend for delegate in method.delegates} - {xnnpack.BACKEND})
    if others:
        why = f"it has delegates of {', '.join(others)}"
        raise UsageError("not compiled for a Cortex-A", where=str(path), why=why, hint="-t cortex-a")
    report = compile_report.find(path)
    data = report.data if report is not None else {}
    found = layout.analyse(method)
    origins = {
        op["instruction"]: op
        for key in ("cpu_ops", "boundary_ops")
        for op in data.get(key, ())
        if op.get("instruction") is not None
    }
    told = data.get("layout") or {}
    norms = told.get("unfolded_norms")
    return {
        "model": data.get("model"),
        "target": data.get("target"),
        "dtype": data["quantization"]["dtype"] if data else None,
        "totals": found.totals(),
        "before": told.get("before"),
        "rewrites": told.get("rewrites", []),
        "splits": [_split(number, split, origins, norms) for number, split in enumerate(found.splits)],
        "unfolded_norms": norms,
    }


def _split(
    number: int,
    split: layout.Split,
    origins: Mapping[int, Mapping[str, Any]],
    norms: Sequence[Mapping[str, str]] | None,
) -> dict[str, Any]:
    return {
        "id": number,
        "operators": [_operator(op, origins.get(op.instruction, {}), norms) for op in split.operators],
        "before": list(split.before),
        "behind": list(split.behind),
        "transposes": layout.movement_json(split.transposes),
        "passing": layout.movement_json(split.passing),
    }


def _operator(
    operator: Outside, origin: Mapping[str, Any], norms: Sequence[Mapping[str, str]] | None
) -> dict[str, Any]:
    path = origin.get("module_path")
    unfolded = norms is None or path in {norm["module_path"] for norm in norms}
    return {
        "operator": operator.name,
        "instruction": operator.instruction,
        "shape": list(operator.shape),
        "dtype": operator.dtype,
        "module_path": path,
        "py_line": origin.get("line"),
        "reason": origin.get("reason"),
        "advice": advice_for(operator, folds=operator.name == _BATCH_NORM and not unfolded),
    }


def to_text(document: Mapping[str, Any]) -> str:
    """The document for a terminal."""
    blocks = [_head(document), *_splits(document["splits"]), _rewrites(document), _norms(document)]
    return "\n\n".join(block for block in blocks if block)


def _head(document: Mapping[str, Any]) -> str:
    names = (document["model"], document["target"], document["dtype"])
    title = ", ".join(name for name in names if name)
    totals = document["totals"]
    found = f"{totals['splits']} split(s)" if totals["splits"] else "no split"
    where = f"{found}: {totals['partitions']} partition(s), {totals['outside']} operator(s) outside"
    return "\n".join(filter(None, (title, where))) + "\n\n" + table(movement_rows(totals))


_PARTS = {
    "at_splits": "transposes at splits",
    "at_interface": "transposes at the program's inputs and outputs",
    "inside": "transposes between operators of a partition",
    "of_model": "transposes of the model itself",
    "transposes": "all transposes",
    "copies": "copies in partitions",
}


def movement_rows(totals: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each kind of movement in partitions."""
    return [
        {"in partitions": title, "count": totals[key]["count"], "bytes": totals[key]["bytes"]}
        for key, title in _PARTS.items()
    ]


def comparison(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Two programs' totals side by side."""
    counts = [
        {"": key, "before": before[key], "after": after[key]} for key in ("partitions", "outside", "splits")
    ]
    moved = [
        {
            "": title if unit == "count" else f"  {unit}",
            "before": before[key][unit],
            "after": after[key][unit],
        }
        for key, title in _PARTS.items()
        for unit in ("count", "bytes")
    ]
    return table([*counts, *moved])


def _splits(splits: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not splits:
        return
    yield table([_row(split, operator) for split in splits for operator in split["operators"]])
    if any(split["passing"]["count"] for split in splits):
        yield (
            "passing by: of tensors that go from a partition before the split directly to one behind it "
            "(skip connections)"
        )
    advice: dict[str, list[str]] = {}
    for split in splits:
        for operator in split["operators"]:
            advice.setdefault(operator["advice"], []).append(str(split["id"]))
    yield "\n".join(f"split {', '.join(dict.fromkeys(ids))}: {text}" for text, ids in advice.items())


def _row(split: Mapping[str, Any], operator: Mapping[str, Any]) -> dict[str, Any]:
    """A split's cost is in the row of its first operator."""
    first = operator is split["operators"][0]
    cost = {
        "transposes": split["transposes"]["count"],
        "bytes": split["transposes"]["bytes"],
        "passing by": split["passing"]["count"],
        "bytes by": split["passing"]["bytes"],
    }
    return {
        "split": split["id"],
        "operator": operator["operator"],
        "shape": "x".join(map(str, operator["shape"])),
        "type": operator["dtype"],
        "module": operator["module_path"] or "",
        "line": operator["py_line"] or "",
        **(cost if first else dict.fromkeys(cost, "")),
        "why outside": operator["reason"] or "",
    }


def _rewrites(document: Mapping[str, Any]) -> str:
    if document["before"] is None:
        return ""
    lines = map(rewrite_text, document["rewrites"])
    return "\n".join([comparison(document["before"], document["totals"]), *lines])


def rewrite_text(rewrite: Mapping[str, Any]) -> str:
    """One line on what a pass has done."""
    if not rewrite["replaced"]:
        return f"{rewrite['name']}: nothing to do"
    return (
        f"{rewrite['name']}: {len(rewrite['replaced'])} replaced; outputs of the example input differ by "
        f"at most {rewrite['error']:.2g} of the largest"
    )


def _norms(document: Mapping[str, Any]) -> str:
    """Normalisations that work on their own, with or without a split."""
    norms = document["unfolded_norms"]
    if not norms:
        return ""
    places = ", ".join(_place(norm) for norm in norms[:4])
    more = f" and {len(norms) - 4} more" if len(norms) > 4 else ""
    return (
        f"{len(norms)} normalisation(s) fold into no convolution, as none is right before them: "
        f"{places}{more}\nno pass can change that order; to have them for nothing, {_RETRAIN}"
    )


def _place(norm: Mapping[str, str]) -> str:
    return " ".join(filter(None, (norm["module_path"], norm["line"] and f"({norm['line']})")))

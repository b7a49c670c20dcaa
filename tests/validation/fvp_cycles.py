# SPDX-License-Identifier: Apache-2.0
"""The cycle model against counters that Arm's FVPs printed.

Compiles the models of ../shared/data/tflite with the Vela that those runs used, estimates their cycles, and
prints them beside the FVP's: networks with beats and cross-validation, single layers, and sweeps of the
memory timing. With ``--docs`` the summary goes into docs/validation.md.

    python tests/validation/fvp_cycles.py --cache out/fvp_cycles
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from npu import stream  # noqa: E402
from npu.config import Family, npu_config  # noqa: E402
from npu.timing import Timing, TimingProfile, estimate, memory_map, profile_for  # noqa: E402
from npu.timing.hardware import PIPELINES, Pipeline  # noqa: E402
from validation import single_layers  # noqa: E402
from validation.vela500 import DATA, SETTINGS, Vela  # noqa: E402

_MODELS = {
    "kws_micronet_m": "kws_micronet_m",
    "mobilenet_v2": "mobilenet_v2_1.0_224_INT8",
    "rnnoise": "rnnoise_INT8",
    "yolo_fastest_192": "yolo-fastest_192_face_v4",
}
_BEATS = {
    "axi0_rd": ("AXI0", "read"),
    "axi0_wr": ("AXI0", "written"),
    "axi1_rd": ("AXI1", "read"),
    "sram_rd": ("SRAM", "read"),
    "sram_wr": ("SRAM", "written"),
    "ext_rd": ("EXT", "read"),
    "ext_wr": ("EXT", "written"),
}
FEW_BEATS = 2000
"""Counts below this are left out of the averages: a handful of beats is some per cent of them."""

_TOTAL_OFFSET = 568
"""What the published TOTAL is above the middle of the interval in which the active cycles lie: its grid is
1,000 cycles wide and 68 cycles off."""


@dataclass(frozen=True)
class Cell:
    """Counters of one run on an FVP."""

    npu: str
    workload: str
    active: int
    vela_total: int
    beats: Mapping[str, int]


def read_cells() -> list[Cell]:
    with (DATA / "fvp" / "calibration.csv").open(newline="") as file:
        return [
            Cell(
                row["npu"],
                row["workload"],
                int(row["active"]),
                int(row["vela_total"]),
                {name: int(row[name]) for name in _BEATS if row[name]},
            )
            for row in csv.DictReader(file)
        ]


class Model:
    """Estimates for compiled networks."""

    def __init__(self, vela: Vela):
        self._vela = vela
        self._streams: dict[tuple[str, Path], stream.CommandStream] = {}

    def timing(
        self, npu: str, model: Path, pipeline: Pipeline | None = None, profile: TimingProfile | None = None
    ) -> Timing:
        setting = SETTINGS[npu]
        return estimate(
            self._stream(npu, model),
            npu_config(f"ethos-{npu}"),
            profile or profile_for(setting.system_config, setting.memory_mode, "mlek"),
            memory_map(setting.memory_mode),
            pipeline,
        )

    def _stream(self, npu: str, model: Path) -> stream.CommandStream:
        key = npu, model
        if key not in self._streams:
            self._streams[key] = stream.parse(self._vela.compile(model, npu)[0].cmd_data)
        return self._streams[key]

    def cell(self, cell: Cell, pipeline: Pipeline | None = None) -> Timing:
        return self.timing(cell.npu, _path(cell.workload), pipeline)


def _path(workload: str) -> Path:
    return DATA / "tflite" / f"{_MODELS[workload]}.tflite"


def per_cent(value: float, reference: float) -> float:
    return 100 * (value / reference - 1)


def mean_error(errors: Iterable[float]) -> float:
    values = [abs(error) for error in errors]
    return sum(values) / len(values)


def beats_of(timing: Timing, name: str) -> int:
    """A beat counter by its name in calibration.csv."""
    port, direction = _BEATS[name]
    return getattr(timing.traffic[port], direction)


# --- networks -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """A cell beside the model: errors in per cent."""

    cell: Cell
    timing: Timing
    error: float
    vela_error: float
    beat_errors: Mapping[str, float]


def compare(model: Model, cell: Cell) -> Comparison:
    timing = model.cell(cell)
    beats = {}
    for name, count in cell.beats.items():
        beats[name] = per_cent(beats_of(timing, name), count)
    return Comparison(
        cell,
        timing,
        per_cent(timing.total, cell.active),
        per_cent(cell.vela_total, cell.active),
        beats,
    )


def print_networks(comparisons: Sequence[Comparison]) -> None:
    print("| NPU | model | FVP active | model | error | Vela | beats, error of each counter |")
    print("|---|---|---:|---:|---:|---:|---|")
    for item in comparisons:
        beats = ", ".join(f"{name} {error:+.1f} %" for name, error in item.beat_errors.items())
        print(
            f"| {item.cell.npu} | {item.cell.workload} | {item.cell.active:,} | {item.timing.total:,} "
            f"| {item.error:+.1f} % | {item.vela_error:+.1f} % | {beats} |"
        )


def by_family(comparisons: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    names = {item.cell.npu.split("-")[0] for item in comparisons}
    return {name: [item for item in comparisons if item.cell.npu.startswith(name)] for name in sorted(names)}


def beat_summary(comparisons: Sequence[Comparison]) -> str:
    """Mean absolute error of each counter over the cells where it counts enough."""
    parts = []
    for name in _BEATS:
        errors = [item.beat_errors[name] for item in comparisons if item.cell.beats.get(name, 0) >= FEW_BEATS]
        if errors:
            parts.append(f"{name} {mean_error(errors):.2f} %")
    return ", ".join(parts)


# --- cross-validation ---------------------------------------------------------------------------------------

_GRIDS: Mapping[Family, Mapping[str, Sequence[float]]] = {
    Family.U55: {"drain": (0, 50, 100, 150), "block_overhead": (0, 12, 24, 32, 40)},
    Family.U65: {"drain": (0, 50, 100, 150), "block_overhead": (0, 12, 24, 36)},
    Family.U85: {
        "command_prefetch": (2, 3, 4, 5),
        "buffer_efficiency": (0.8, 0.9, 1.0),
        "drain": (0, 50, 100, 150, 200),
        "tap_overhead": (1, 2, 3, 4),
    },
}
"""Values that a refit may choose from, for the parameters that are marked as fitted and matter."""


class Fit:
    """Refits a family's parameters on some of its cells."""

    def __init__(self, model: Model, family: Family, cells: Sequence[Cell]):
        self._family, self._grid = family, _GRIDS[family]
        self.cells = [cell for cell in cells if npu_config(f"ethos-{cell.npu}").family is family]
        self._model = model
        self._errors: dict[tuple[str, str, tuple[float, ...]], float] = {}

    def _error(self, cell: Cell, values: tuple[float, ...]) -> float:
        key = cell.npu, cell.workload, values
        if key not in self._errors:
            total = self._model.cell(cell, self._pipeline(values)).total
            self._errors[key] = per_cent(total, cell.active)
        return self._errors[key]

    def _pipeline(self, values: tuple[float, ...]) -> Pipeline:
        return replace(PIPELINES[self._family], **dict(zip(self._grid, values, strict=True)))

    def held_out(self, left_out: Callable[[Cell], bool]) -> float | None:
        """Mean error on the cells left out after a fit on the others; None if either has no cell."""
        test = [cell for cell in self.cells if left_out(cell)]
        train = [cell for cell in self.cells if not left_out(cell)]
        if not test or not train:
            return None
        values = self._fit(train)
        return mean_error(self._error(cell, values) for cell in test)

    def _fit(self, cells: Sequence[Cell]) -> tuple[float, ...]:
        """Coordinate descent from the middle of each grid; what makes no difference stays there."""
        values = tuple(grid[len(grid) // 2] for grid in self._grid.values())
        for _ in range(2):
            for index, grid in enumerate(self._grid.values()):
                options = [values, *((*values[:index], value, *values[index + 1 :]) for value in grid)]
                values = min(options, key=lambda option: mean_error(self._error(c, option) for c in cells))
        return values


def cross_validate(model: Model, cells: Sequence[Cell]) -> dict[str, dict[str, float]]:
    """Mean error on what was left out: {"workload" or "npu": {name: per cent}}."""
    fits = [Fit(model, family, cells) for family in Family]
    result: dict[str, dict[str, float]] = {}
    for what in ("workload", "npu"):
        result[what] = {}
        for name in dict.fromkeys(getattr(cell, what) for cell in cells):
            errors = []
            for fit in fits:
                count = sum(getattr(cell, what) == name for cell in fit.cells)
                error = fit.held_out(lambda cell: getattr(cell, what) == name)  # noqa: B023
                errors += [error] * count if error is not None else []
            result[what][name] = mean_error(errors)
    return result


# --- single layers and sweeps -------------------------------------------------------------------------------


def read_layers() -> list[tuple[str, str, int]]:
    """(operator, height x width, middle of the published interval) on U85-256."""
    with (DATA / "fvp" / "single_op_u85_256.csv").open(newline="") as file:
        return [
            (row["op"], row["HxW"], int(row["u85_256_base"]) - _TOTAL_OFFSET) for row in csv.DictReader(file)
        ]


def single_layer_errors(model: Model, cache_folder: Path) -> list[tuple[str, int, int]]:
    """(layer, middle of the published interval, model)."""
    return [
        (
            f"{op} {size}",
            published,
            model.timing("u85-256", single_layers.write(cache_folder, op, size)).total,
        )
        for op, size, published in read_layers()
    ]


_SWEEPS: tuple[tuple[str, str, str, str, Mapping[int, int]], ...] = (
    ("u85-256", "rnnoise", "ext", "rlatency", {0: 22086, 125: 27086, 250: 36086, 500: 62086, 1000: 114086}),
    ("u85-512", "rnnoise", "ext", "rlatency", {0: 19086, 125: 24086, 250: 32086, 500: 55086, 1000: 99086}),
    ("u85-256", "rnnoise", "ext", "maxr", {1: 243086, 4: 68086, 16: 36086, 64: 36086}),
    ("u85-256", "kws_micronet_m", "ext", "rlatency", {0: 196068, 250: 199068, 500: 214068, 1000: 259068}),
    ("u85-512", "kws_micronet_m", "ext", "rlatency", {0: 104068, 250: 109068, 500: 114068, 1000: 163068}),
    ("u55-256", "rnnoise", "ext", "bwcap", {25: 179059, 50: 105059, 100: 77059, 200: 77059, 0: 77059}),
    ("u55-256", "kws_micronet_m", "sram", "bwcap", {2000: 343050, 4000: 244050, 8000: 241050, 0: 241050}),
)
"""NPU, model, port, setting of its adapter, and the published TOTAL by value."""


def sweep_errors(model: Model) -> list[tuple[str, float]]:
    """(point, error in per cent)."""
    result = []
    for npu, workload, port, name, points in _SWEEPS:
        setting = SETTINGS[npu]
        base = profile_for(setting.system_config, setting.memory_mode, "mlek")
        for value, total in points.items():
            adapter = replace(getattr(base, port), **{name: value})
            profile = replace(base, name=f"{port}.{name}={value}", **{port: adapter})
            found = model.timing(npu, _path(workload), profile=profile).total
            error = per_cent(found, total - _TOTAL_OFFSET)
            result.append((f"{npu} {workload} {port}.{name}={value}", error))
    return result


# --- report -------------------------------------------------------------------------------------------------

_BEGIN, _END = "<!-- fvp_cycles begin -->", "<!-- fvp_cycles end -->"


def summary(comparisons: Sequence[Comparison]) -> list[str]:
    """Table rows: family, cells, mean and worst error, Vela's, beats."""
    lines = [
        "| family | cells | mean error | worst | Vela's mean | beats, mean error of each counter |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for family, items in by_family(comparisons).items():
        worst = max(items, key=lambda item: abs(item.error))
        lines.append(
            f"| {family.upper()} | {len(items)} | {mean_error(i.error for i in items):.2f} % "
            f"| {worst.error:+.1f} % ({worst.cell.npu}, {worst.cell.workload}) "
            f"| {mean_error(i.vela_error for i in items):.1f} % | {beat_summary(items)} |"
        )
    return lines


def cross_summary(result: Mapping[str, Mapping[str, float]]) -> list[str]:
    lines = ["| left out of the fit | mean error on it |", "|---|---:|"]
    for name, error in itertools.chain.from_iterable(group.items() for group in result.values()):
        lines.append(f"| {name} | {error:.1f} % |")
    return lines


def layer_summary(layers: Sequence[tuple[str, int, int]]) -> str:
    mean = mean_error(per_cent(found, published) for _, published, found in layers)
    close = sum(abs(found - published) <= 1000 for _, published, found in layers)
    return (
        f"Single layers on U85-256: mean error {mean:.1f} % against the middle of the published interval, "
        f"{close} of {len(layers)} within 1,000 cycles."
    )


def sweep_summary(sweeps: Sequence[tuple[str, float]]) -> str:
    close = sum(abs(error) <= 10 for _, error in sweeps)
    worst = max(sweeps, key=lambda point: abs(point[1]))
    return (
        f"Sweeps of the memory timing: mean error {mean_error(error for _, error in sweeps):.1f} %, "
        f"{close} of {len(sweeps)} points within 10 %; worst {worst[0]}: {worst[1]:+.1f} %."
    )


_FAMILY_LIMITS = {"u55": 1.3, "u65": 3.0, "u85": 2.5}
_CELL_LIMIT, _HELD_OUT_LIMIT, _LAYER_LIMIT, _CLOSE_LAYERS = 8.0, 4.0, 6.0, 40


def missed_targets(
    comparisons: Sequence[Comparison],
    crossed: Mapping[str, Mapping[str, float]],
    layers: Sequence[tuple[str, int, int]],
    sweeps: Sequence[tuple[str, float]],
) -> Iterator[str]:
    """What the model was to reach and does not."""
    for family, items in by_family(comparisons).items():
        if (mean := mean_error(item.error for item in items)) > _FAMILY_LIMITS[family]:
            yield f"{family.upper()} mean {mean:.2f} % (at most {_FAMILY_LIMITS[family]:g} %)"
    for item in comparisons:
        if abs(item.error) > _CELL_LIMIT:
            yield f"{item.cell.npu} {item.cell.workload} {item.error:+.1f} % (at most {_CELL_LIMIT:g} %)"
    for name, error in itertools.chain.from_iterable(group.items() for group in crossed.values()):
        if error > _HELD_OUT_LIMIT:
            yield f"{name} left out of the fit {error:.1f} % (at most {_HELD_OUT_LIMIT:g} %)"
    if (mean := mean_error(per_cent(found, published) for _, published, found in layers)) > _LAYER_LIMIT:
        yield f"single layers {mean:.1f} % (at most {_LAYER_LIMIT:g} %)"
    close = sum(abs(found - published) <= 1000 for _, published, found in layers)
    if close < _CLOSE_LAYERS:
        yield f"{close} single layers within 1,000 cycles (at least {_CLOSE_LAYERS})"
    yield from (f"{point} {error:+.1f} % (at most 10 %)" for point, error in sweeps if abs(error) > 10)


def write_docs(text: str) -> None:
    """Put `text` between the markers of docs/validation.md.

    Raises:
        ValueError: the markers are missing.
    """
    path = ROOT / "docs" / "validation.md"
    before, _, rest = path.read_text().partition(_BEGIN)
    _, found, after = rest.partition(_END)
    if not found:
        raise ValueError(f"{path} has no {_BEGIN} … {_END}")
    path.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=ROOT / "out" / "fvp_cycles", help="compiled networks")
    parser.add_argument("--vela", type=Path, help="a Vela 5.0.0; without it one is installed in the cache")
    parser.add_argument("--cross-validate", action="store_true", help="leave out a model or an NPU in turn")
    parser.add_argument("--docs", action="store_true", help="write the summary into docs/validation.md")
    args = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: {DATA} is not here")
        return 0
    model = Model(Vela(args.cache, args.vela))
    cells = read_cells()
    comparisons = [compare(model, cell) for cell in cells]
    print_networks(comparisons)
    layers = single_layer_errors(model, args.cache)
    sweeps = sweep_errors(model)
    for layer, published, found in layers:
        print(f"{layer:18}{published:9,}{found:9,}  {per_cent(found, published):+6.1f} %")
    for point, error in sweeps:
        print(f"{point:46}{error:+6.1f} %")
    text = [*summary(comparisons), ""]
    crossed = cross_validate(model, cells) if args.cross_validate else {}
    if crossed:
        text += [*cross_summary(crossed), ""]
    text += [layer_summary(layers), "", sweep_summary(sweeps), ""]
    missed = list(missed_targets(comparisons, crossed, layers, sweeps))
    text.append(f"Targets missed: {'; '.join(missed) if missed else 'none'}.")
    print("", *text, sep="\n")
    if args.docs:
        write_docs("\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())

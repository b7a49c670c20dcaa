# SPDX-License-Identifier: Apache-2.0
"""Runs as comparisons and gates see them, from run records: that of a Cortex-A gives one for each mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from report import record
from report.cpu_profile import CpuProfile, from_json
from report.errors import ArmdeployError, RunFailed
from report.record import Metric, agreement

NPU = "npu"
"""Of a record's profiles, the one that is of no CPU."""


@dataclass(frozen=True)
class Run:
    """One run, or one mode of it.

    Attributes:
        target: as `armdeploy` spells it, with the number of threads where that is not one.
        dtype, system, where: of the program; system configuration and memory mode; the platform.
        timing: of the memories, by name of the timing adapters' profile.
        output: see `report.record.agreement`, or why the run failed.
        exit_code: of the run; its numbers do not count if it failed.
        program_bytes, ram_bytes: of the .pte; of the planned memory and the NPU's scratch. None is unknown.
        cpu_operators: those outside delegates with their reasons, None where no compile report tells.
        kernels: of the CPU, in the program; `delegates` how many.
        metrics: every number that it has; `profile` the operators of a CPU, `npu` those of NPU networks.
        inputs: hashes.
        source: the file that it was read from.
    """

    model: str
    model_sha256: str | None
    target: str
    dtype: str
    system: str
    where: str
    output: str
    exit_code: int
    program_bytes: int | None = None
    ram_bytes: int | None = None
    cpu_operators: Sequence[Mapping[str, Any]] | None = None
    kernels: tuple[str, ...] = ()
    delegates: int = 0
    metrics: tuple[Metric, ...] = ()
    profile: CpuProfile | None = None
    npu: Mapping[str, Any] | None = None
    macs: int | None = None
    timing: str = ""
    pte_sha256: str = ""
    inputs: tuple[str, ...] = ()
    tools: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    source: str = ""

    @property
    def failed(self) -> bool:
        return self.exit_code != 0

    @property
    def key(self) -> tuple[str, str | None]:
        """Runs for which it is equal are of one model."""
        return self.model, self.model_sha256


def read(path: Path) -> list[Run]:
    """The runs in the record at `path`, which ``armdeploy run --json`` has printed.

    Raises:
        UsageError: see `report.record.read`.
    """
    return runs_of(record.read(path), str(path))


def failure(model: str, target: str, dtype: str, error: ArmdeployError) -> Run:
    """A run that could not be made at all."""
    return Run(model, None, target, dtype, "", "", error.one_line(), error.exit_code)


def runs_of(found: Mapping[str, Any], source: str) -> list[Run]:
    """The runs in a record that fits its schema."""
    profiles = {key: from_json(told) for key, told in found["profile"].items() if key != NPU}
    metrics = [Metric(**metric) for metric in found["metrics"]]
    if not profiles:
        return [_run(found, source, found["target"]["npu"] or found["target"]["cpu"], tuple(metrics), None)]
    shared = [metric for metric in metrics if not any(metric.name.endswith(f"_{key}") for key in profiles)]
    runs: list[Run] = []
    for key, profile in profiles.items():
        threads = f" x{profile.threads}" if profile.threads > 1 else ""
        own = (*_of_mode(metrics, key), *(() if runs else shared))  # what is of no mode is of the first
        runs.append(_run(found, source, profile.target.name + threads, own, profile))
    return runs


def _of_mode(metrics: Sequence[Metric], key: str) -> Iterator[Metric]:
    """Those whose names end with the mode's, without that ending."""
    for metric in metrics:
        if metric.name.endswith(f"_{key}"):
            yield replace(metric, name=metric.name.removesuffix(f"_{key}"))


def _run(
    found: Mapping[str, Any],
    source: str,
    target: str,
    metrics: tuple[Metric, ...],
    profile: CpuProfile | None,
) -> Run:
    of, made = found["target"], found["provenance"]
    program, (output, exit_code) = made.get("pte", {}), _verdict(found)
    return Run(
        model=of["model"],
        model_sha256=made.get("model_sha256"),
        target=target,
        dtype=made.get("dtype", "unknown"),
        system=", ".join(filter(None, (of["system_config"], of["memory_mode"]))),
        where=_where(found["platform"]),
        output=output,
        exit_code=exit_code,
        program_bytes=program.get("size"),
        ram_bytes=_ram(found["memory"]),
        cpu_operators=made.get("cpu_operators"),
        kernels=tuple(op["name"] for op in found["ops"] if op["kind"] == "kernel"),
        delegates=sum(op["kind"] == "delegate" for op in found["ops"]),
        metrics=metrics,
        profile=profile,
        npu=found["profile"].get(NPU),
        macs=of["macs"],
        timing=found["platform"].get("timing_adapter", ""),
        pte_sha256=program.get("sha256", ""),
        inputs=tuple(tensor["sha256"] for tensor in found["inputs"]),
        tools=made.get("tools", {}),
        warnings=tuple(found["warnings"]),
        source=source,
    )


def _where(platform: Mapping[str, str]) -> str:
    named = (platform["kind"], *(platform[key] for key in ("board", "device", "runner") if platform.get(key)))
    return ", ".join(named)


def _verdict(found: Mapping[str, Any]) -> tuple[str, int]:
    """The output and the exit code: nothing has failed, and at least one comparison has passed."""
    checks, (code, reason) = found["checks"], (found["exit"]["code"], found["exit"]["reason"])
    if code:
        return reason or found["status"], code
    failed = [f"{check['name']}: {check['detail']}" for check in checks if check["result"] == "fail"]
    passed = [c["detail"] for c in checks if (c["kind"], c["result"]) == ("comparison", "pass")]
    if failed or found["status"] != "ok" or not passed:
        return failed[0] if failed else "no output was compared", RunFailed.exit_code
    return agreement(passed), 0


def _ram(memory: Mapping[str, Any]) -> int | None:
    if "scratch_peak_bytes" not in memory:
        return None
    return int(memory["planned_peak_bytes"] + memory["scratch_peak_bytes"])

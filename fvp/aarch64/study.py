# SPDX-License-Identifier: Apache-2.0
"""One program in one mode and with NEON alone: outputs, profiles, kernel evidence, checks, the run record.

With several numbers of threads, both modes run with each of them.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fvp.aarch64 import reference
from fvp.aarch64.host_xnnpack import HOST_XNNPACK, float_operators, run_on_host
from fvp.aarch64.options import CpuRun
from fvp.aarch64.platform import NO_LATENCY, CortexAPlatform, OverAdb, OverSsh
from fvp.inference import (
    Request,
    choose_inputs,
    compiled_provenance,
    op_record,
    sha256_of,
    status_of,
    write_outputs,
)
from fvp.platform import Job, Outcome
from fvp.platforms import AUTO, choose
from report import compile_report, kernel_evidence, pte, xnnpack
from report.compile_report import CompileReport
from report.cortex_a import BASELINE, FLOAT_PROGRAM, CpuTarget, find_cpu_target, is_cortex_a
from report.cpu_profile import CpuProfile
from report.errors import ArmdeployError, OutputMismatch, PlatformTimeout, RunFailed, UsageError
from report.record import Check, Exit, Metric, RunRecord, Tensor

TORCH = "torch on the program before lowering"
FP16_SUMS = "the program before lowering, summed in fp16 as the kernels do"
FLOAT_MODEL = "the model in float"
_QUANTIZED = ("int8", "int8-dynamic")
"""Types whose reference is another build of XNNPACK."""

_PART = "of the largest value"


@dataclass(frozen=True)
class Study:
    """A finished study: the record, the first mode's outputs and log, a profile of each mode that ran."""

    record: RunRecord
    outputs: tuple[np.ndarray, ...]
    log: str
    error: ArmdeployError | None
    profiles: tuple[CpuProfile, ...]


@dataclass(frozen=True)
class _Plan:
    """A request with everything read and checked; `modes` are run in this order, each with all `threads`."""

    request: Request
    method: pte.Method
    report: CompileReport | None
    modes: tuple[CpuTarget, ...]
    threads: tuple[int, ...]
    arrays: tuple[np.ndarray, ...]
    input_source: str
    platform: CortexAPlatform
    warning: str

    @property
    def dtype(self) -> str:
        """The type that the program computes in, "unknown" without a compile report."""
        return self.report.data["quantization"]["dtype"] if self.report else "unknown"


@dataclass(frozen=True)
class _Mode:
    """What one mode gave."""

    target: CpuTarget
    outcome: Outcome
    profile: CpuProfile


def is_for_cortex_a(program: Path, target: str | None) -> bool:
    """Whether a program belongs here: by its delegates; without any by the target asked for or compiled for.

    Raises:
        UsageError: the program cannot be read, or was compiled for another kind of target.
    """
    asked = None if target is None else is_cortex_a(target)
    backends = {delegate.backend for delegate in pte.load(program).method().delegates}
    if not backends:
        report = compile_report.find(program)
        return asked if asked is not None else report is not None and is_cortex_a(report.target)
    found = xnnpack.BACKEND in backends
    if asked is not None and asked != found:
        why = f"its delegates are of {', '.join(sorted(backends))}"
        raise UsageError(f"not compiled for {target}", where=str(program), why=why, hint="compile again")
    return found


def infer(request: Request, options: CpuRun | None = None) -> Study:
    """Run `request` in its mode and, for comparison, with NEON alone.

    Raises:
        UsageError, EnvironmentError_: nothing was run. A run that fails is a Study with `error` set.
    """
    plan = _plan(request, options or CpuRun())
    modes: list[_Mode] = []
    checks: tuple[Check, ...] = ()
    errors: tuple[Metric, ...] = ()
    log, failure = "", None
    started = time.perf_counter()
    try:
        for threads in plan.threads:
            modes += [_run(plan, target, threads) for target in plan.modes]
        checks = _checks(plan, modes)
        errors = tuple(_errors(plan, modes[0].outcome.outputs))
    except (RunFailed, PlatformTimeout) as error:
        failure, log = error, error.log
    seconds = {"platform": time.perf_counter() - started}
    return _study(plan, modes, checks, errors, failure or _verdict(checks), log, seconds)


def _plan(request: Request, options: CpuRun) -> _Plan:
    method = pte.load(request.pte).method()
    report = compile_report.find(request.pte)
    target = find_cpu_target(request.target or (report.target if report else "cortex-a"))
    if request.runner is not None:
        raise UsageError("--runner is for virtual boards", where=f"--target {target.name}")
    platform, warning = choose(_platform_name(request, options), target.name)
    if not isinstance(platform, CortexAPlatform):
        raise UsageError(f"{platform.name} has no profile of a CPU", where="--platform")
    platform.configure(options)
    arrays, source = choose_inputs(request, method, report)
    modes = tuple(dict.fromkeys((target, BASELINE)))
    return _Plan(request, method, report, modes, options.threads, arrays, source, platform, warning)


def _platform_name(request: Request, options: CpuRun) -> str:
    """``auto`` means the machine that an option names."""
    if request.platform != AUTO:
        return request.platform
    return OverAdb.name if options.serial else OverSsh.name if options.host else AUTO


def _run(plan: _Plan, target: CpuTarget, threads: int) -> _Mode:
    outputs = plan.method.tensors(plan.method.outputs)
    job = Job(
        pte=plan.request.pte,
        target=target.name,
        inputs=plan.arrays,
        timeout=plan.request.timeout,
        verbose=plan.request.verbose,
        output_specs=tuple((tensor.shape, np.dtype(tensor.dtype)) for tensor in outputs),
    )
    outcome, profile = plan.platform.profiled(job, threads)
    return _Mode(target, outcome, profile)


def _checks(plan: _Plan, modes: Sequence[_Mode]) -> tuple[Check, ...]:
    evidence = [Check(c.name, "pass", c.detail, "evidence") for c in modes[0].outcome.checks]
    evidence += [kernel_evidence.check(mode.profile) for mode in modes]
    references = _references(plan, modes)
    return (*evidence, *_reference_checks(plan, modes, references), *_mode_checks(plan, modes, references))


@dataclass(frozen=True)
class _Reference:
    """Expected outputs, and what they are of."""

    outputs: tuple[np.ndarray, ...]
    origin: str


def _references(plan: _Plan, modes: Sequence[_Mode]) -> list[_Reference | None]:
    """One for each mode, see `reference`; None where no compile report names the program before lowering."""
    find = functools.cache(lambda sme: _reference(plan, sme=sme))
    return [find(plan.dtype == "fp16" and _sums_in_fp32(mode)) for mode in modes]


def _reference(plan: _Plan, *, sme: bool) -> _Reference | None:
    if plan.dtype in _QUANTIZED:
        return _Reference(run_on_host(plan.request.pte, plan.arrays), HOST_XNNPACK)
    if plan.report is None or plan.report.reference is None:
        return None
    program = plan.report.reference
    if plan.dtype == "fp16":
        return _Reference(reference.run_fp16(program, plan.arrays, sme=sme), FP16_SUMS)
    return _Reference(reference.run_reference(program, plan.arrays), TORCH)


def _sums_in_fp32(mode: _Mode) -> bool:
    """Whether the mode took KleidiAI's fp16 kernels."""
    return any(operator.path == "PF16" for operator in mode.profile.operators)


def _reference_checks(
    plan: _Plan, modes: Sequence[_Mode], references: Sequence[_Reference | None]
) -> Iterator[Check]:
    for number, (mode, expected) in enumerate(zip(modes, references, strict=True)):
        name = f"output with {mode.profile.title}" if number else "output"
        if expected is None:
            yield Check(name, "not run", "no compile report names the program before lowering")
        else:
            yield _output_check(plan, name, mode.outcome.outputs, expected)


def _mode_checks(
    plan: _Plan, modes: Sequence[_Mode], references: Sequence[_Reference | None]
) -> Iterator[Check]:
    """The first mode against each other one; where their references differ, by that and no more."""
    first, own = modes[0], references[0]
    for mode, their in zip(modes[1:], references[1:], strict=True):
        name = f"{first.profile.title} against {mode.profile.title}"
        outputs, origin = mode.outcome.outputs, f"the same program with {mode.profile.title}"
        if own and their and own is not their and _shapes(own.outputs) == _shapes(outputs):
            outputs = reference.moved(outputs, their.outputs, own.outputs)
            apart = reference.largest_difference(own.outputs, their.outputs)
            origin += f", moved by the {apart:.2g} by which the references differ"
        yield _output_check(plan, name, first.outcome.outputs, _Reference(outputs, origin))


def _shapes(outputs: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    return [array.shape for array in outputs]


def _output_check(plan: _Plan, name: str, actual: Sequence[np.ndarray], expected: _Reference) -> Check:
    """By the rule of the program's type: integer arithmetic has one right answer."""
    if plan.dtype in _QUANTIZED:
        floats = float_operators(plan.method)
        return reference.check_equal(name, actual, expected.outputs, expected.origin, floats)
    return reference.check_close(name, actual, expected.outputs, expected.origin, plan.dtype)


def _errors(plan: _Plan, outputs: Sequence[np.ndarray]) -> Iterator[Metric]:
    """How far a program is from torch, and a quantised one from the float model: information, no check."""
    program = plan.report.reference if plan.report else None
    if program is None or plan.dtype not in ("fp16", *_QUANTIZED):
        return
    wanted = [("simulation_error", TORCH, program)]
    if plan.dtype in _QUANTIZED:
        wanted.append(("quantization_error", FLOAT_MODEL, program.with_name(FLOAT_PROGRAM)))
    nature = "simulated" if plan.platform.emulated else "measured"
    for name, against, program in wanted:
        if not program.is_file():
            yield Metric(name, None, _PART, nature, plan.platform.name, f"{program} was not kept")
            continue
        found = reference.largest_difference(outputs, reference.run_reference(program, plan.arrays))
        known = found if math.isfinite(found) else None
        yield Metric(name, known, _PART, nature, plan.platform.name, f"largest difference from {against}")


def _verdict(checks: Sequence[Check]) -> ArmdeployError | None:
    """None for a good run: nothing failed, and at least one comparison was made and passed."""
    failed = [check for check in checks if check.result == "fail"]
    if failed:
        kind = OutputMismatch if failed[0].kind == "comparison" else RunFailed
        return kind(failed[0].detail, where=failed[0].name)
    if not any(check.kind == "comparison" and check.result == "pass" for check in checks):
        hint = "keep the compile report beside the .pte"
        return RunFailed("no output could be checked", hint=hint)
    return None


def _study(
    plan: _Plan,
    modes: Sequence[_Mode],
    checks: tuple[Check, ...],
    errors: tuple[Metric, ...],
    error: ArmdeployError | None,
    log: str,
    seconds: Mapping[str, float],
) -> Study:
    outputs = modes[0].outcome.outputs if modes else ()
    profiles = tuple(mode.profile for mode in modes)
    record = RunRecord(
        status=status_of(error),
        exit=Exit(error.exit_code, error.one_line()) if error else Exit(0),
        target=_target(plan),
        platform={"kind": plan.platform.name, **(modes[0].outcome.provenance if modes else {})},
        inputs=_tensors(plan, "inputs", plan.arrays, [None] * len(plan.arrays)),
        outputs=_tensors(plan, "outputs", outputs, write_outputs(plan.request.output_dir, outputs)),
        checks=checks,
        metrics=(*(metric for profile in profiles for metric in _metrics(plan, profile)), *errors),
        ops=tuple(
            op_record(number, item, plan.method) for number, item in enumerate(plan.method.instructions)
        ),
        memory={"planned_bytes": list(plan.method.planned_bytes)},
        profile={profile.key: profile.to_json() for profile in profiles},
        warnings=(*([plan.warning] if plan.warning else []), *_compiled(plan, "warnings", [])),
        provenance={
            **compiled_provenance(plan.request.pte, plan.report),
            "input_source": plan.input_source,
            "host_seconds": dict(seconds),
        },
    )
    return Study(record, outputs, modes[0].outcome.log if modes else log, error, profiles)


def _compiled(plan: _Plan, key: str, default: Any) -> Any:
    return plan.report.data.get(key, default) if plan.report is not None else default


def _target(plan: _Plan) -> dict[str, Any]:
    nothing = dict.fromkeys(("npu", "macs", "board", "system_config", "memory_mode"))
    model = _compiled(plan, "model", plan.request.pte.stem)
    return {**nothing, "cpu": plan.modes[0].name, "model": model}


def _metrics(plan: _Plan, profile: CpuProfile) -> list[Metric]:
    """The inference's cost, and its latency: not known on an emulator."""
    key, source = profile.key, plan.platform.name
    if profile.nature == "measured":
        times = profile.latencies
        spread = f"median of {len(times)}, {min(times):,} to {max(times):,}"
        note = f"{spread}, without profiler, {profile.power} power"
        return [Metric(f"latency_{key}", profile.latency, "ns", "measured", source, note)]
    return [
        Metric(f"instructions_{key}", profile.inference, "instructions", profile.nature, source),
        Metric(f"latency_{key}", None, "ns", "measured", source, NO_LATENCY),
    ]


def _tensors(
    plan: _Plan, side: str, arrays: Sequence[np.ndarray], files: Sequence[Path | None]
) -> tuple[Tensor, ...]:
    numbered = [{"name": f"{side[:-1]}-{number}"} for number in range(len(arrays))]
    names = [tensor["name"] for tensor in _compiled(plan, side, numbered)]
    return tuple(
        Tensor(name, array.shape, str(array.dtype), sha256_of(array.tobytes()), str(path) if path else None)
        for name, array, path in zip(names, arrays, files, strict=False)
    )

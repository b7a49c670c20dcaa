# SPDX-License-Identifier: Apache-2.0
"""One inference and its proof: inputs, references, the platform, the checks, the run record.

The references are computed before the platform starts: the host reference (`fvp.host`) gives the
expected outputs and each delegate's inputs, `tosa_reference_model` what each delegate must answer.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fvp import compare, inputs, tosa
from fvp.host.executor import HostRun, execute_method
from fvp.host.platform import HostPlatform
from fvp.platform import Check as PlatformCheck
from fvp.platform import Job, Outcome, Platform
from fvp.platforms import choose
from npu.config import NpuConfig, from_config_word, npu_config
from npu.container import parse_velabin
from npu.errors import NpuError
from npu.stream import parse
from npu.timing import Timing, document
from npu.timing.accuracy import ACCURACY
from report import compile_report, describe, profile_text, pte, xnnpack
from report.compile_report import CompileReport
from report.errors import ArmdeployError, OutputMismatch, PlatformTimeout, RunFailed, UsageError
from report.record import Check, Exit, Metric, Op, RunRecord, Tensor

HOST_REFERENCE = "the host reference"
TOSA_REFERENCE = "tosa_reference_model"
_CYCLE_COUNTERS = ("npu_active", "npu_total")


@dataclass(frozen=True)
class Request:
    """What to run.

    Attributes:
        input_files: one for each input; empty takes the model's example input, else random data.
        seed: seed of random inputs; None prefers the example input.
        platform: "auto", or the name of one platform.
        runner: the firmware, where the platform has a choice; None takes the default.
        timeout: seconds that the platform may take.
        verbose: stream the platform's console to stderr.
        output_dir: where to write out-0.bin …; None writes none.
    """

    pte: Path
    target: str | None = None
    input_files: tuple[Path, ...] = ()
    seed: int | None = None
    platform: str = "auto"
    runner: str | None = None
    timeout: float = 60.0
    verbose: bool = False
    output_dir: Path | None = None


@dataclass(frozen=True)
class Result:
    """A run: its record, the outputs themselves and the platform's log. `error` is why it failed."""

    record: RunRecord
    outputs: tuple[np.ndarray, ...]
    log: str
    error: ArmdeployError | None


@dataclass(frozen=True)
class _Plan:
    """A request with everything read and checked."""

    request: Request
    program: pte.Program
    report: CompileReport | None
    config: NpuConfig
    input_arrays: tuple[np.ndarray, ...]
    input_source: str
    platform: Platform
    warnings: tuple[str, ...]

    @property
    def method(self) -> pte.Method:
        return self.program.method()


def infer(request: Request) -> Result:
    """Run `request` and check it.

    Raises:
        UsageError, EnvironmentError_: nothing was run. A run that fails is a Result with `error` set.
    """
    plan = _plan(request)
    started = time.perf_counter()
    try:
        reference = execute_method(plan.method, plan.program.named_data, plan.input_arrays, plan.config)
        comparisons = [_check_delegate(plan, reference, i) for i in range(len(reference.delegate_runs))]
    except RunFailed as error:
        return _result(plan, (), None, error, {"reference": time.perf_counter() - started})
    prepared = time.perf_counter()
    outcome, failure = _run_platform(plan, reference)
    evidence: tuple[Check, ...] = ()
    if outcome is not None:
        evidence = tuple(_evidence(check) for check in outcome.checks)
        comparisons.append(_check_output(plan, outcome, reference))
    verdict = failure or _verdict(evidence, comparisons)
    seconds = {"reference": prepared - started, "platform": time.perf_counter() - prepared}
    calls = [run.delegate for run in reference.delegate_runs]
    return _result(plan, (*evidence, *comparisons), outcome, verdict, seconds, calls)


def _plan(request: Request) -> _Plan:
    program = pte.load(request.pte)
    method = program.method()
    report = compile_report.find(request.pte)
    config = _target(request, program, method, report)
    platform, warning = choose(request.platform, config.name, request.runner)
    warnings: tuple[str, ...] = (warning,) if warning else ()
    arrays, source = choose_inputs(request, method, report)
    if report is None:
        warnings += (f"no compile report beside {request.pte.name}: delegates are not compared with TOSA",)
    return _Plan(request, program, report, config, arrays, source, platform, warnings)


def _target(
    request: Request, program: pte.Program, method: pte.Method, report: CompileReport | None
) -> NpuConfig:
    """The NPU that the program's command streams are for, which must be the one asked for.

    Without any, the one asked for or compiled for.
    """
    asked = npu_config(request.target) if request.target else None
    for delegate in method.delegates:
        try:
            stream = parse(parse_velabin(delegate.blob, program.named_data).cmd_data)
            built_for = from_config_word(stream.config_word)
        except NpuError as error:
            raise UsageError(
                "damaged delegate",
                where=str(request.pte),
                why=f"{type(error).__name__}: {error}",
                hint="compile again",
            ) from error
        if asked is not None and asked != built_for:
            raise UsageError(
                f"built for {built_for.name}, not for {asked.name}",
                where=str(request.pte),
                hint="compile for that target",
            )
        return built_for
    return asked or npu_config(report.target if report else "ethos-u85")


def choose_inputs(
    request: Request, method: pte.Method, report: CompileReport | None
) -> tuple[tuple[np.ndarray, ...], str]:
    """The input arrays of a run, and where they come from: the request's files, the example, a seed."""
    tensors = method.tensors(method.inputs)
    if request.input_files:
        preprocessing = report.preprocessing if report else None
        source = ", ".join(path.name for path in request.input_files)
        return inputs.load_inputs(request.input_files, tensors, preprocessing), source
    if report is not None and report.example_inputs and request.seed is None:
        return inputs.load_inputs(report.example_inputs, tensors, None), "the model's example input"
    seed = request.seed or 0
    return inputs.random_inputs(tensors, seed), f"random, seed {seed}"


def _check_delegate(plan: _Plan, reference: HostRun, call: int) -> Check:
    """Compare one delegate call with the TOSA reference model on the graph that Vela got."""
    run = reference.delegate_runs[call]
    name = f"delegate {run.delegate}"
    if plan.report is None:
        return Check(name, "not run", "no compile report tells which TOSA graph Vela got")
    graph = plan.report.tosa[run.delegate]
    if not graph.is_file():
        return Check(name, "not run", f"{graph} is gone")
    expected = tosa.run_reference(graph.read_bytes(), run.inputs)
    flat = [
        np.frombuffer(a.tobytes(), e.dtype).reshape(e.shape)
        for a, e in zip(run.outputs, expected, strict=True)
    ]
    return compare.check_equal(name, flat, expected, TOSA_REFERENCE, [])


def _run_platform(plan: _Plan, reference: HostRun) -> tuple[Outcome | None, ArmdeployError | None]:
    job = Job(
        pte=plan.request.pte,
        target=plan.config.name,
        inputs=plan.input_arrays,
        timeout=plan.request.timeout,
        verbose=plan.request.verbose,
        output_specs=tuple((output.shape, output.dtype) for output in reference.outputs),
        runner=plan.request.runner,
        memory_mode=_compiled(plan, "memory_mode", None),
        system_config=_compiled(plan, "system_config", None),
    )
    try:
        return plan.platform.run(job), None
    except (RunFailed, PlatformTimeout) as error:
        return None, error


def _evidence(check: PlatformCheck) -> Check:
    return Check(check.name, "pass" if check.passed else "fail", check.detail, "evidence")


def _check_output(plan: _Plan, outcome: Outcome, reference: HostRun) -> Check:
    if isinstance(plan.platform, HostPlatform):
        return Check("output", "not run", "the host platform is the reference itself")
    calls = [i.operator for i in plan.method.instructions if isinstance(i, pte.KernelCall)]
    inexact = compare.inexact_operators(calls)
    return compare.check_equal("output", outcome.outputs, reference.outputs, HOST_REFERENCE, inexact)


def labels_of(program: Path) -> Path | None:
    """The label file that the compile report beside `program` names, if any."""
    report = compile_report.find(program)
    return report.labels if report is not None else None


def _verdict(evidence: Sequence[Check], comparisons: Sequence[Check]) -> ArmdeployError | None:
    """None for a good run: nothing failed, and at least one comparison was made and passed."""
    failed = [check for check in (*evidence, *comparisons) if check.result == "fail"]
    if failed:
        return OutputMismatch(failed[0].detail, where=failed[0].name)
    if not any(check.result == "pass" for check in comparisons):
        why = "; ".join(f"{check.name}: {check.detail}" for check in comparisons)
        hint = "keep the compile report beside the .pte, or use --platform virtual"
        return RunFailed("no output could be checked", why=why, hint=hint)
    return None


def _result(
    plan: _Plan,
    checks: tuple[Check, ...],
    outcome: Outcome | None,
    error: ArmdeployError | None,
    seconds: Mapping[str, float],
    calls: Sequence[int] = (),
) -> Result:
    """`calls` are the delegates' numbers, call by call."""
    outputs = outcome.outputs if outcome is not None else ()
    files = write_outputs(plan.request.output_dir, outputs)
    method = plan.method
    record = RunRecord(
        status=status_of(error),
        exit=Exit(error.exit_code, error.one_line()) if error else Exit(0),
        target=_target_record(plan, outcome),
        platform={"kind": plan.platform.name, **(outcome.provenance if outcome else {})},
        inputs=_tensor_records(plan.report, "inputs", plan.input_arrays, [None] * len(plan.input_arrays)),
        outputs=_tensor_records(plan.report, "outputs", outputs, files),
        checks=checks,
        metrics=_metrics(plan, outcome),
        ops=tuple(op_record(i, instruction, method) for i, instruction in enumerate(method.instructions)),
        memory={"planned_bytes": list(method.planned_bytes), **_compiled(plan, "memory", {})},
        profile=_profile(plan, outcome, calls),
        warnings=(
            *plan.warnings,
            *(outcome.remarks if outcome is not None else ()),
            *_compiled(plan, "warnings", []),
        ),
        provenance={
            **compiled_provenance(plan.request.pte, plan.report),
            "input_source": plan.input_source,
            "host_seconds": {**seconds, "npu_model": outcome.npu_seconds if outcome else None},
        },
    )
    return Result(record, outputs, outcome.log if outcome is not None else error.log if error else "", error)


def _profile(plan: _Plan, outcome: Outcome | None, calls: Sequence[int]) -> dict[str, Any]:
    """NPU networks by operation: of each delegate its first call, where each job was one."""
    timings = outcome.timings if outcome is not None else ()
    if not timings or len(timings) != len(calls):
        return {}
    networks = [_network(plan, number, timings[calls.index(number)]) for number in dict.fromkeys(calls)]
    accuracy = str(ACCURACY[plan.config.family])
    return {"npu": {"nature": "simulated", "accuracy": accuracy, "networks": networks}}


def _network(plan: _Plan, number: int, timing: Timing) -> dict[str, Any]:
    """One delegate's operations with where they come from, and what bounds it in one sentence."""
    network = {"id": number, **document(timing), "stream": {"first_command": 0}}
    if plan.report is not None:
        network = describe.attach_origins(network, *plan.report.network_origins(number))
    sentence = profile_text.bottleneck(network)
    del network["roofline"]  # as long again as the operations, from which it follows
    return {**network, "bottleneck": sentence}


def compiled_provenance(program: Path, report: CompileReport | None) -> dict[str, Any]:
    """What was run and what its compile report says: model, type, versions, operators outside delegates.

    Without a report the type is "unknown", and the model and those operators are None.
    """
    data = report.data if report is not None else {}
    content = program.read_bytes()
    return {
        "pte": {"path": str(program), "sha256": sha256_of(content), "size": len(content)},
        "model_sha256": data.get("model_sha256"),
        "dtype": data["quantization"]["dtype"] if report is not None else "unknown",
        "cpu_operators": data.get("cpu_ops"),
        "tools": data.get("tools", {}),
    }


def status_of(error: ArmdeployError | None) -> str:
    """The record's `status` for a run that ended with `error`."""
    if error is None:
        return "ok"
    if isinstance(error, OutputMismatch):
        return "wrong_output"
    return "timeout" if isinstance(error, PlatformTimeout) else "failed"


def _compiled(plan: _Plan, key: str, default: Any) -> Any:
    return plan.report.data.get(key, default) if plan.report is not None else default


def _target_record(plan: _Plan, outcome: Outcome | None) -> dict[str, Any]:
    hardware = outcome.provenance if outcome is not None else {}
    return {
        "npu": plan.config.name,
        "macs": plan.config.macs,
        "board": hardware.get("board"),
        "cpu": hardware.get("cpu"),
        "system_config": _compiled(plan, "system_config", None),
        "memory_mode": _compiled(plan, "memory_mode", None),
        "model": _compiled(plan, "model", plan.request.pte.stem),
    }


def _tensor_records(
    report: CompileReport | None, side: str, arrays: Sequence[np.ndarray], files: Sequence[Path | None]
) -> tuple[Tensor, ...]:
    names = (
        [t["name"] for t in report.data[side]] if report else [f"{side[:-1]}-{i}" for i in range(len(arrays))]
    )
    return tuple(
        Tensor(name, array.shape, str(array.dtype), sha256_of(array.tobytes()), str(path) if path else None)
        for name, array, path in zip(names, arrays, files, strict=False)
    )


def write_outputs(folder: Path | None, outputs: Sequence[np.ndarray]) -> list[Path | None]:
    """Write ``out-0.bin`` … into `folder`; their paths, or None for each when there is no folder."""
    if folder is None:
        return [None] * len(outputs)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path | None] = []
    for number, array in enumerate(outputs):
        path = folder / f"out-{number}.bin"
        path.write_bytes(array.tobytes())
        paths.append(path)
    return paths


def _metrics(plan: _Plan, outcome: Outcome | None) -> tuple[Metric, ...]:
    return _counters(plan, outcome) + _estimates(plan)


def _counters(plan: _Plan, outcome: Outcome | None) -> tuple[Metric, ...]:
    if outcome is None:
        return ()
    return tuple(
        Metric(
            name,
            value,
            "beats" if "beat" in name else "cycles",
            plan.platform.capabilities.nature,
            plan.platform.name,
            _counter_note(plan, name) if value is not None else outcome.counters_note,
        )
        for name, value in outcome.counters.items()
    )


def _counter_note(plan: _Plan, name: str) -> str:
    """Beside cycles that the cycle model counted, how far it is from Arm's FVPs."""
    modelled = plan.platform.capabilities.nature == "simulated"
    return str(ACCURACY[plan.config.family]) if modelled and name in _CYCLE_COUNTERS else ""


def _estimates(plan: _Plan) -> tuple[Metric, ...]:
    """Vela's own figures, summed over the delegates."""
    totals: dict[tuple[str, str], float] = {}
    for delegate in _compiled(plan, "delegates", []):
        for name, figure in delegate["vela"].items():
            if figure["unit"] in ("cycles", "MACs") and figure["value"]:
                key = name, figure["unit"]
                totals[key] = totals.get(key, 0) + figure["value"]
    return tuple(
        Metric(f"vela_{n}", v, u, "estimated", "Vela", "sum of delegates") for (n, u), v in totals.items()
    )


def op_record(number: int, instruction: pte.Instruction, method: pte.Method) -> Op:
    """One instruction of a program; XNNPACK's delegates compute on the CPU."""
    if isinstance(instruction, pte.DelegateCall):
        backend = method.delegates[instruction.delegate].backend
        return Op(number, backend, "delegate", "cpu" if backend == xnnpack.BACKEND else "npu")
    if isinstance(instruction, pte.KernelCall):
        return Op(number, instruction.operator, "kernel", "cpu")
    return Op(number, type(instruction).__name__, "control", "cpu")


def sha256_of(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()

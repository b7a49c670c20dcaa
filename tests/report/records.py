# SPDX-License-Identifier: Apache-2.0
"""Run records for tests: an NPU's, and a Cortex-A's with two modes."""

from __future__ import annotations

from typing import Any

from report.record import Check, Exit, Metric, Op, RunRecord

MODEL = "a" * 64


def npu_record(
    npu: str = "ethos-u55-128", cycles: int | None = 1000, *, nature: str = "simulated", **changes: Any
) -> RunRecord:
    note = "" if cycles is not None else "it was switched off"
    fields: dict[str, Any] = {
        "status": "ok",
        "exit": Exit(0),
        "target": {
            "npu": npu,
            "macs": 128,
            "cpu": "Cortex-M55",
            "system_config": "System",
            "memory_mode": "Shared_Sram",
            "board": "corstone-300",
            "model": "net",
        },
        "platform": {"kind": "virtual", "board": "corstone-300"},
        "checks": (Check("output", "pass", "exact: 1 output(s) bit-equal to the host reference"),),
        "metrics": (
            Metric("npu_active", cycles, "cycles", nature, "virtual", note),
            Metric("vela_cycles_total", 900, "cycles", "estimated", "Vela"),
        ),
        "ops": (Op(0, "quantize", "kernel", "cpu"), Op(1, "EthosUBackend", "delegate", "npu")),
        "memory": {"planned_peak_bytes": 100, "scratch_peak_bytes": 20},
        "profile": {"npu": {"nature": "simulated", "accuracy": "1 %", "networks": [network(cycles or 0)]}},
        "provenance": provenance(),
    }
    return RunRecord(**{**fields, **changes})


def provenance(**changes: Any) -> dict[str, Any]:
    made = {
        "pte": {"path": "net.pte", "sha256": "b" * 64, "size": 4096},
        "model_sha256": MODEL,
        "dtype": "int8",
        "cpu_operators": [],
        "tools": {"ethos-u-vela": "5.1.0"},
    }
    return {**made, **changes}


def cpu_record() -> RunRecord:
    """A Cortex-A with SME2 and NEON, instructions counted, no time."""
    modes = {"sme2": ("cortex-a-sme2", 500), "neon": ("cortex-a-neon", 2000)}
    metrics = []
    for key, (_, count) in modes.items():
        metrics.append(Metric(f"instructions_{key}", count, "instructions", "emulated-count", "emulated"))
        metrics.append(Metric(f"latency_{key}", None, "ns", "measured", "emulated", "no time here"))
    return npu_record(
        target={
            **dict.fromkeys(("npu", "macs", "board", "system_config", "memory_mode")),
            "cpu": "cortex-a-sme2",
            "model": "net",
        },
        platform={"kind": "aarch64-emulated"},
        metrics=tuple(metrics),
        memory={"planned_bytes": [0, 64]},
        profile={key: profile(*mode) for key, mode in modes.items()},
    )


def profile(target: str, cost: int) -> dict[str, Any]:
    operator = {"name": "Convolution (NHWC, QS8, QC8W) GEMM", "delegated": True, "cost": cost - 100}
    return {
        "target": target,
        "nature": "emulated-count",
        "operators": [{**operator, "classes": {}, "kernels": [], "start": 0}],
        "inference": cost,
        "stages": {"this inference": cost},
        "sme_kernels": [],
        "sme_instructions": 0,
        "threads": 1,
        "power": "default",
        "latencies": [],
    }


def network(cycles: int) -> dict[str, Any]:
    """A network of two operations."""
    traffic = dict.fromkeys(("beats_read", "beats_written", "bytes_read", "bytes_written"), 8)
    common = {"mode": "", "share": 0.5, "macs": 9, "utilisation": 0.1, "bound": "mac", "port": ""}
    common |= {"mac_cycles": 5, "output_cycles": 5, "decoder_cycles": 5, "traffic": {"AXI0": traffic}}
    operation = {"cycles": cycles // 2, "module_path": "stem.0", "py_line": None, **common}
    operations = [{"id": number, "name": name, **operation} for number, name in enumerate(("CONV", "POOL"))]
    said = "bottleneck: the MAC array"
    return {"id": 0, "cycles": cycles, "macs": 18, "operations": operations, "bottleneck": said}

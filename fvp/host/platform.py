# SPDX-License-Identifier: Apache-2.0
"""The host platform: the reference executor itself, for machines without QEMU or firmware."""

from __future__ import annotations

import platform
import time
from importlib.util import find_spec

from fvp.platform import Capabilities, Job, Outcome, Platform
from npu.config import CONFIGS, npu_config
from report import pte


class HostPlatform(Platform):
    """Runs a .pte on this machine: no firmware, no Arm code, no counters."""

    name = "host"
    capabilities = Capabilities(targets=frozenset(CONFIGS))

    @classmethod
    def available(cls) -> str | None:
        """None, or that torch is missing."""
        return None if find_spec("torch") else "torch is not installed; run ./setup.sh"

    def run(self, job: Job) -> Outcome:
        """Execute the program's forward method; raises RunFailed."""
        from fvp.host.executor import execute_method

        program = pte.load(job.pte)
        started = time.perf_counter()
        run = execute_method(program.method(), program.named_data, job.inputs, npu_config(job.target))
        return Outcome(
            outputs=run.outputs,
            log="",
            counters={},
            npu_seconds=run.npu_seconds,
            wall_seconds=time.perf_counter() - started,
            npu_jobs=len(run.delegate_runs),
            provenance={"host": platform.machine(), "python": platform.python_version()},
        )

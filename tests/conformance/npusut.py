# SPDX-License-Identifier: Apache-2.0
"""The NPU model as a system under test of tosa-tools' own runner.

    PYTHONPATH=. tosa_verif_run_tests -r -t FOLDER --no-color --sut-module tests.conformance.npusut \
        --sut-module-args tests.conformance.npusut:ethos-u85-256 --xunit-file results.xml

The runner makes the reference result first and judges ours with tosa_verify.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from runner.tosa_test_runner import TosaTestRunner

from npu.errors import NpuError
from tests.conformance.cases import Case, compile_graph, run_compiled

DEFAULT_NPU = "ethos-u85-256"


class TosaSUTRunner(TosaTestRunner):
    """Compiles the test's graph with Vela and executes it; the runner looks for this name."""

    def runTestGraph(self) -> tuple[TosaTestRunner.TosaGraphResult, str | None]:
        """Write the results beside the test; a refusal or fault is an error with its reason."""
        case = Case(Path(self.testDir))
        npu = self.runnerArgs[0] if self.runnerArgs else DEFAULT_NPU
        with tempfile.TemporaryDirectory() as folder:
            compiled = compile_graph(case.graph_path, npu, Path(folder))
            if compiled is None:
                return TosaTestRunner.TosaGraphResult.OTHER_ERROR, f"Vela refuses it for {npu}"
            try:
                outputs = run_compiled(compiled, npu, case.inputs())
            except NpuError as error:
                return TosaTestRunner.TosaGraphResult.TOSA_ERROR, str(error)
        self._write(case, outputs)
        return TosaTestRunner.TosaGraphResult.TOSA_VALID, None

    def _write(self, case: Case, outputs: list[np.ndarray]) -> None:
        tensors = case.description["meta"]["compliance"]["tensors"]
        files = zip(case.description["ofm_name"], case.description["ofm_file"], outputs, strict=True)
        for name, path, array in files:
            kind = tensors[name]["data_type"]
            shaped = array.reshape(tensors[name]["shape"])
            np.save(case.folder / path, shaped.astype(np.bool_) if kind == "BOOL" else shaped)

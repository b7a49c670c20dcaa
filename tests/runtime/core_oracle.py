# SPDX-License-Identifier: Apache-2.0
"""Loads and executes .pte files on ExecuTorch's own runtime: prints "ORACLE NAME CODE" for each.

0 is success, 255 a refusal without an error code, -N a runtime that signal N brought down: each file has a
process of its own, forked when torch is imported.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import torch
from executorch.runtime import Runtime


def code_of(path: Path) -> int:
    """Error code of loading and executing the method "forward" with inputs of ones."""
    try:
        program = Runtime.get().load_program(path.read_bytes())  # owns what its method reads
        method = program.load_method("forward")
        if method is None:
            return 0x12
        meta = method.metadata
        tensors = [meta.input_tensor_meta(k) for k in range(meta.num_inputs())]
        types = {3: torch.int32, 4: torch.int64, 6: torch.float32, 11: torch.bool}
        method.execute([torch.ones(t.sizes(), dtype=types[t.dtype()]) for t in tensors])
    except RuntimeError as error:
        found = re.search(r"error:? 0x:?([0-9a-fA-F]+)", str(error))
        return int(found[1], 16) if found else 255
    except IndexError:
        return 255
    return 0


def status_of(path: Path) -> int:
    """`code_of` in a child; minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        os._exit(code_of(path))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


for name in sys.argv[1:]:
    print(f"\nORACLE {Path(name).name} {status_of(Path(name))}", flush=True)

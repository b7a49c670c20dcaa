# SPDX-License-Identifier: Apache-2.0
"""``armdeploy compile`` and ``python aot/compile.py``: the program is `aot.compile`."""

from aot.compile import add_arguments, run

__all__ = ["add_arguments", "run"]

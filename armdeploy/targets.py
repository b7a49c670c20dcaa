# SPDX-License-Identifier: Apache-2.0
"""``armdeploy targets``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from aot.targets import FAMILIES
from fvp.platforms import names_for
from npu.config import CONFIGS
from report.cortex_a import TARGETS
from report.tables import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout")


def run(arguments: argparse.Namespace) -> int:
    """Print every target with the defaults of compile and the platforms of run."""
    rows: list[dict[str, Any]] = [
        {
            "target": config.name,
            "macs": config.macs,
            "board": FAMILIES[config.family].board.name,
            "system_config": FAMILIES[config.family].system_config,
            "memory_mode": FAMILIES[config.family].memory_mode,
            "platforms": names_for(config.name),
        }
        for config in CONFIGS.values()
    ]
    nothing = dict.fromkeys(("macs", "board", "system_config", "memory_mode"))
    rows += [{"target": name, **nothing, "platforms": names_for(name)} for name in TARGETS]
    print(json.dumps(rows, indent=2) if arguments.json else table(rows))
    return 0

# SPDX-License-Identifier: Apache-2.0
"""What several test files compile only once."""

from __future__ import annotations

from pathlib import Path

import pytest

from armdeploy.main import main

TARGETS = ("ethos-u85-256", "ethos-u65-512")


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with two_conv compiled for `TARGETS`, its layers' losses measured; not to be written to."""
    folder = tmp_path_factory.mktemp("compiled")
    words = ["compile", "-m", "two_conv", "-t", ",".join(TARGETS), "--quantization_loss", "-o", str(folder)]
    assert main(words) == 0
    return folder

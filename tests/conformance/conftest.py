# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the conformance tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_weight_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode every weight stream: what an older decoder left on disk proves nothing."""
    monkeypatch.setenv("ARMDEPLOY_CACHE", "off")

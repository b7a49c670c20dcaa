# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the oracle tests."""

from __future__ import annotations

import pytest

from oracle.cache import LoweredModels


@pytest.fixture(autouse=True)
def no_weight_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode every weight stream: what an older decoder left on disk proves nothing."""
    monkeypatch.setenv("ARMDEPLOY_CACHE", "off")


@pytest.fixture(scope="session")
def lowered_models(pytestconfig: pytest.Config) -> LoweredModels:
    """Lowered one-idea models, kept in pytest's cache folder."""
    return LoweredModels(pytestconfig.cache.mkdir("oracle"))

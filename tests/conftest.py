"""Shared by all tests: where the handed-out material lies, and hypothesis settings that fit slow machines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

settings.register_profile("gristmill", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gristmill")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of documents, schemas and cases that no clone carries."""
    folder = ROOT / os.environ.get("GRISTMILL_SHARED", "../shared")
    if not folder.is_dir():
        pytest.skip("the shared test material is absent: set GRISTMILL_SHARED")
    return folder

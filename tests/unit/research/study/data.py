"""The paper's tables, where they are."""

from __future__ import annotations

import os

import pytest

needs_data = pytest.mark.skipif(
    "RADOCRAFT_DATA" not in os.environ, reason="RADOCRAFT_DATA does not name the folder of the paper's tables"
)

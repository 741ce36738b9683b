"""Shared by the tests of the studies."""

from __future__ import annotations

import pytest

from celerysim.studies.tables import CellResult, tables


@pytest.fixture(scope="session")
def all_cells() -> list[CellResult]:
    """All 24 cells, three runs each."""
    return tables(3)

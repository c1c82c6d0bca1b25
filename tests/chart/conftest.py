"""Fixtures of the chart's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chart.helm import template
from tests.chart.matrix import MATRIX, NAMESPACE
from tests.fleets import SOURCE, TARGET, bare_fleet
from tests.kit import Fleet
from vnode.api.objects import Objects

__all__ = ["bare_fleet"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a fleet of this module's own (a source, a target): releases change whole clusters."""
    found = Fleet(tmp_path_factory.mktemp("fleet"))
    try:
        found.run("up", SOURCE, TARGET, "--nodes", "1")
        yield found
    finally:
        found.run("down")


class RenderedMatrix(dict[str, Objects]):
    """The objects of the chart, by the name of its values in the matrix; rendered when asked for.

    All at once would take longer than a test may on a slow machine.
    """

    def __missing__(self, name: str) -> Objects:
        self[name] = template(MATRIX[name], namespace=NAMESPACE)
        return self[name]


@pytest.fixture(scope="module")
def rendered() -> dict[str, Objects]:
    return RenderedMatrix()
